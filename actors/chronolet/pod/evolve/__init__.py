"""Folds a pod's events into its state. Pure."""
