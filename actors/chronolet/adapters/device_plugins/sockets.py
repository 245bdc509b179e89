"""Which socket a path means.

Comes in: a path. Goes out: what tells one socket from the next at the same path. Next: `registry`, `watcher`.
"""

from __future__ import annotations

import os
import stat

Identity = tuple[int, int, int]
"""Device, inode and birth: numbers of inodes are soon used again."""


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """Of the socket at this path; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # Not the time of change, which a change of rights moves too.
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if stat.S_ISSOCK(found.st_mode) else None
