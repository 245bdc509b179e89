"""Explains from the log why a container restarted, or why a pod is in its present state."""
