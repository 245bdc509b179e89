"""What a pod does next: starts, restarts, hooks, termination, back-off. Pure."""
