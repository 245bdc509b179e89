"""Rules for probes: periods, results, and whether a failure counts."""
