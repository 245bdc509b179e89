"""The ports that pods need in addition to the runtime: manifests, secrets, specs, volumes, logs, probes, HTTP."""
