"""Remove a folder that containers have written to.

Input: a folder. Output: none; the folder no longer exists. Next: `folders`. Corresponds to the kubelet's removeall
(pkg/util/removeall), without its recursion.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

# The name is taken. (A rename replaces an empty folder of that name, which is harmless: it is to be removed too.)
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Remove a folder with all its content, if it exists. Symbolic links are never followed.

    Containers may nest folders thousands of levels deep, so the tree is not walked: each round moves grandchildren up
    into the folder and removes the emptied children. Thus only two folders are open at any time.
    """
    try:
        top = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return
    try:
        numbers = itertools.count()
        while entries := _entries(top):
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _lift_and_remove(top, entry.name, numbers)
                else:
                    os.unlink(entry.name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _lift_and_remove(top: int, name: str, numbers: Iterator[int]) -> None:
    child = os.open(name, _FOLDER, dir_fd=top)
    try:
        for entry in _entries(child):
            if entry.is_dir(follow_symlinks=False):
                _lift(child, entry.name, top, numbers)
            else:
                os.unlink(entry.name, dir_fd=child)
    finally:
        os.close(child)
    os.rmdir(name, dir_fd=top)


def _lift(child: int, name: str, top: int, numbers: Iterator[int]) -> None:
    for number in numbers:
        try:
            os.rename(name, f".removed-{number}", src_dir_fd=child, dst_dir_fd=top)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return
