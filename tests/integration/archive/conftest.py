"""The S3-compatible service of the adapters' tests."""

from tests.adapters.archive.conftest import bucket, s3

__all__ = ["bucket", "s3"]
