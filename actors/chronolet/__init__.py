"""chronolet: a node agent that runs Kubernetes Pods on a plain Docker host and remembers everything it did."""
