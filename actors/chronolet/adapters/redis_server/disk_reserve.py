"""Disk reserve: a preallocated file on the state folder's disk, deleted when the disk fills up (docs/design.md, Redis).

Input: a path and a size. Output: free space, so that Redis can start again and the garbage collectors can run; later
the file is written again. Next: the supervisor, when `server` reports a full disk.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_MEBIBYTE = 1 << 20


class DiskReserve:
    """One file that occupies `size_bytes` of disk space."""

    def __init__(self, path: Path, size_bytes: int = 64 * _MEBIBYTE) -> None:
        self.path = path
        self.size_bytes = size_bytes

    def present(self) -> bool:
        """Whether the file exists with its full size."""
        try:
            return self.path.stat().st_size >= self.size_bytes
        except FileNotFoundError:
            return False

    def restore(self) -> bool:
        """Write the file if it is missing or too small. Return False if this would leave less than its size free.
        Raises OSError.
        """
        if self.present():
            return True
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(self.path.parent).free < 2 * self.size_bytes:
            return False
        temporary = self.path.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # Allocate blocks, because a sparse file would reserve nothing.
            os.posix_fallocate(descriptor, 0, self.size_bytes)
            os.fsync(descriptor)
        except OSError:
            temporary.unlink()
            raise
        finally:
            os.close(descriptor)
        temporary.rename(self.path)
        return True

    def release(self) -> int:
        """Delete the file and return the number of bytes that this frees; 0 if there is no file."""
        try:
            freed = self.path.stat().st_blocks * 512
            self.path.unlink()
        except FileNotFoundError:
            return 0
        return freed
