"""Segments: the raw outcomes of one process's probes over a minute, as compact records (docs/adr/0056)."""
