"""The page /metrics/state: pods, containers and the node, by kube-state-metrics' names."""
