"""Provides the images of containers."""
