"""The page /metrics/state: metrics of pods, containers and the node under the names that kube-state-metrics uses."""
