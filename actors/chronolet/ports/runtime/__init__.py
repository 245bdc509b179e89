"""The container runtime and its images."""
