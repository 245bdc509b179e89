"""A file that takes up room on the state folder's disk, to be given up when the disk is full (DESIGN 4, last line).

Comes in: a path and a size. Goes out: room. With it Redis can start again, the garbage collectors can run, and then the
file is written anew. Next: the supervisor, when `server` says that the disk is full.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_MEBIBYTE = 1 << 20


class Ballast:
    """`size_bytes` of real blocks in one file."""

    def __init__(self, path: Path, size_bytes: int = 64 * _MEBIBYTE) -> None:
        self.path = path
        self.size_bytes = size_bytes

    def present(self) -> bool:
        """Whether the room is held, all of it."""
        try:
            return self.path.stat().st_size >= self.size_bytes
        except FileNotFoundError:
            return False

    def restore(self) -> bool:
        """Hold the room, if that leaves as much again; False if there is too little for that. OSError if the disk
        refuses.
        """
        if self.present():
            return True
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(self.path.parent).free < 2 * self.size_bytes:
            return False
        temporary = self.path.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # Blocks that are really there: a sparse file would hold nothing.
            os.posix_fallocate(descriptor, 0, self.size_bytes)
            os.fsync(descriptor)
        except OSError:
            temporary.unlink()
            raise
        finally:
            os.close(descriptor)
        temporary.rename(self.path)
        return True

    def give_up(self) -> int:
        """Delete the file; how many bytes became free (0: there was none)."""
        try:
            freed = self.path.stat().st_blocks * 512
            self.path.unlink()
        except FileNotFoundError:
            return 0
        return freed
