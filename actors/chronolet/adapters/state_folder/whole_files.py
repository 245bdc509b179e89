"""Files that are the new one or the old one, whatever is killed, and are on the disk when the call is over.

Comes in: a path and its content. Goes out: the file, readable for its owner only. Next: what is kept beside the log.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes, *, like_folder: bool = False) -> None:
    """After this the file is the new one on the disk too; a crash before leaves the old one. Raises OSError.

    `like_folder` gives it to the folder's owner: root may write for an agent that is somebody else.
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
    for folder in (path.parent, path.parent.parent):  # the second: it may be new itself
        sync_folder(folder)


def _give(handle: int, folder: Path) -> None:
    owner, mine = folder.stat(), os.fstat(handle)
    if owner.st_uid != mine.st_uid:
        os.fchown(handle, owner.st_uid, owner.st_gid)


def sync_folder(folder: Path) -> None:
    """Names that came or went in this folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
