"""Prints the output of commands: tables, ages, JSONPath, terminal-safe text, progress."""
