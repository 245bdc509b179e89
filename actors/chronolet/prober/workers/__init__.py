"""The workers that probe containers."""
