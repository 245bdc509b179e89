"""Storage for archive files: a folder, or a bucket of an S3-compatible service."""
