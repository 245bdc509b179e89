"""Holds back liveness and startup kills. Pure."""
