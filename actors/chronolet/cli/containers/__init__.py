"""The commands `logs` and `exec`."""
