"""Decides which dead objects to remove. Pure."""
