"""One container's claim for devices, from the pod's request until the devices are freed. Pure. Entry: `lifecycle`."""
