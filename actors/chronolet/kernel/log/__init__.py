"""Reads the event log: live, during recovery, and from archives."""
