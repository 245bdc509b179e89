"""`logs` and `exec`."""
