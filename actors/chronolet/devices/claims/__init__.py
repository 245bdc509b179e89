"""One container's claim for devices, from the pod's request to the freed devices. Pure. Entry: `lifecycle`."""
