"""Device plugins, CDI and PodResources."""
