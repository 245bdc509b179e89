"""The effect workers of pods, which call the runtime, the disk and the network."""
