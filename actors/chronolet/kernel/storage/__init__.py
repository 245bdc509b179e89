"""The kernel's store: its Protocol, an in-memory implementation, and the implementation for Redis."""
