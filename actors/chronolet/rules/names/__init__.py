"""Names that Kubernetes and Docker allow: pods, hosts, images, ports, registries."""
