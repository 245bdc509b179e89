"""For authors of device plugins, probes and policies: recorded histories in tests (docs/histories-in-tests.md)."""
