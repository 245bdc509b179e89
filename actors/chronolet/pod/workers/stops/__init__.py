"""Stops containers and sandboxes, and orders the stops of all pods."""
