"""Rules for probes: periods, initial results, and whether a time-out counts."""
