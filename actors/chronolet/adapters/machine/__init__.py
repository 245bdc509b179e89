"""The machine's properties, usage and processes, as read from the kernel."""
