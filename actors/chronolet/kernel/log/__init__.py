"""Reads the event log live, during recovery and from archive files; writes those files, and detects lost entries."""
