"""The kernel's store: its Protocol, and its implementations in memory and on Redis."""
