"""Verifies the files of a log's archive, and repairs them from the stream."""
