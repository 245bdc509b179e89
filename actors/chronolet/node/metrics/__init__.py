"""The agent's own Prometheus metrics, by subsystem."""
