"""Reads the event log: live, at recovery, and from archives."""
