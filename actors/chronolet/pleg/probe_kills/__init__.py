"""The hold-back of liveness and startup kills. Pure."""
