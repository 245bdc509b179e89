"""Output: tables, ages, JSONPath, terminal-safe text, progress."""
