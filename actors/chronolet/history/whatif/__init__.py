"""Decides a log again with a change, next to what happened."""
