"""The store behind the kernel: its Protocol, in memory, and on Redis."""
