"""The single thread that runs all probes, and the threads for attempts that block."""
