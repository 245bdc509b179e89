"""The fixtures of the archive adapters' tests: an S3-compatible service, and a place in its bucket."""

from tests.adapters.archive.conftest import bucket, s3

__all__ = ["bucket", "s3"]
