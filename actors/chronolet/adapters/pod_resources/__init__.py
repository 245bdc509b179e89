"""The PodResources gRPC service."""
