"""The single thread of all probes, and the threads for attempts that block."""
