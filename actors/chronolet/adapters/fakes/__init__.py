"""A container runtime in memory, under the same contract suite as the real one."""
