"""Acceptance of a pod or a changed spec, and admission: its share of the node and its devices. Pure."""
