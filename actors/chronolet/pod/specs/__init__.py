"""Translates a pod's spec into the runtime's container specs, mounts and devices."""
