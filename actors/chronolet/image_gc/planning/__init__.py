"""Decides which images to remove, and describes what a run achieved. Pure."""
