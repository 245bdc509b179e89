"""Plans a pod's next steps: starts, restarts, hooks, termination, back-off. Pure."""
