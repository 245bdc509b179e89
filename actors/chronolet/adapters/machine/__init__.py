"""The machine as read from the kernel."""
