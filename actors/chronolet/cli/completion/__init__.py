"""Completions for shells, and the command `completion`."""
