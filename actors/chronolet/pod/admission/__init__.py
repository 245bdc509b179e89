"""Accepting a pod or a changed spec, and claiming its share of the node and its devices. Pure."""
