"""What pods need besides the runtime: manifests, secrets, specs, volumes, logs, probes, HTTP."""
