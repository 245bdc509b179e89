"""The ports of pods other than the runtime: manifests, secrets, specs, volumes, logs, probes, HTTP."""
