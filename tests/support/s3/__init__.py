"""A private S3-compatible service."""
