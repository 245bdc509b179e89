"""Finds the storage of archive files that the setting `--archive` names.

Input: the setting, the state folder. Output: a function from a run to its `ArchiveStorage`. Next: `node.composition`,
`cli.services`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.kernel.log.archive_storage import ArchiveStorage

Place = Callable[[str], ArchiveStorage]
"""A function that takes a run and returns the storage of its archive files."""

BUCKET_SCHEME = "s3://"


def place(archive: str, root_dir: Path, writer: str = "keeper") -> Place:
    """Return the place that `archive` names: the URL of a bucket, a folder, or empty for the folder `archive` in the
    state folder `root_dir`. `writer`: see `FolderStorage`.
    """
    if archive.startswith(BUCKET_SCHEME):
        from chronolet.adapters.archive.bucket import BucketStorage  # noqa: PLC0415 - most nodes use a folder

        return lambda run: BucketStorage(archive, run)
    base = Path(archive) if archive else root_dir / "archive"
    return lambda run: FolderStorage(base, run, writer)
