"""The store behind the kernel: its Protocol, the in-memory twin, and Redis."""
