"""Builds an agent process from its settings: its actor kinds and their adapters."""
