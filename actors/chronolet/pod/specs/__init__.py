"""From a pod's spec to the runtime's container specs, mounts and devices."""
