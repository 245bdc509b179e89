"""Derives a pod's facts from effect results and from observations. Pure."""
