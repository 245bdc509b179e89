"""Atomic, durable file writes: after a crash, the file has either its old or its new content.

Input: a path and its content. Output: the file, readable only by its owner. Next: the modules that store data outside
the log.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes, *, like_folder: bool = False) -> None:
    """Replace the file atomically and flush it to disk; a crash before that leaves the old file. Raises OSError.

    `like_folder`: give the file the folder's owner, because root may write for an agent that runs as another user.
    """
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if like_folder:
                _give(file.fileno(), path.parent)
            file.flush()
            os.fsync(file.fileno())
        Path(unfinished).rename(path)
    except BaseException:
        Path(unfinished).unlink()
        raise
    for folder in (path.parent, path.parent.parent):  # also the parent's parent, because the parent may be new
        sync_folder(folder)


def _give(handle: int, folder: Path) -> None:
    owner, mine = folder.stat(), os.fstat(handle)
    if owner.st_uid != mine.st_uid:
        os.fchown(handle, owner.st_uid, owner.st_gid)


def sync_folder(folder: Path) -> None:
    """Flush the creation and removal of files in this folder to disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
