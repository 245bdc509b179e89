"""The single thread that makes all probes, and the threads for attempts that block."""
