"""Composition of an agent process: its actor kinds with their adapters, built from settings."""
