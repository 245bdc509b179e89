"""Effect workers of pods: their calls to the runtime, the disk and the network."""
