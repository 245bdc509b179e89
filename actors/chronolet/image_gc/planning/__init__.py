"""Decides which images to remove, and reports what a run achieved. Pure."""
