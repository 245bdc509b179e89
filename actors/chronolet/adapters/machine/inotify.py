"""Wake up when something in a folder changes. Linux only: uses inotify.

Input: a folder. Output: a wake-up; the caller finds out what has changed. Next: `watched_folder`, `watcher`.
File-watching libraries poll their list of changes every few milliseconds: reacting within 2 ms would cost more CPU time
than the whole agent is allowed, and at an acceptable idle cost they take 60 ms. Sleeping in the kernel costs nothing
and reacts immediately, and no other feature of such a library is needed here.
"""

from __future__ import annotations

import ctypes
import os
import select
import stat
import struct
from pathlib import Path
from typing import Final

_MODIFIED_AND_CLOSED: Final = 0x00000008
_MOVED_FROM: Final = 0x00000040
_MOVED_TO: Final = 0x00000080
_CREATE: Final = 0x00000100
_DELETE: Final = 0x00000200
_DELETE_SELF: Final = 0x00000400
_MOVE_SELF: Final = 0x00000800
_ONLY_FOLDERS: Final = 0x01000000
_UNMOUNTED: Final = 0x00002000
_IGNORED: Final = 0x00008000

_WATCHED: Final = (
    _MODIFIED_AND_CLOSED | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
)
_GONE: Final = _DELETE_SELF | _MOVE_SELF | _UNMOUNTED | _IGNORED

_HEAD = struct.Struct("iIII")
_READ_BYTES = 65536

_libc = ctypes.CDLL(None, use_errno=True)


class FolderNotifier:
    """Watches one folder, not its subfolders. Raises OSError if the folder cannot be watched."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = _checked(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK), folder)
        self.moved_in: set[str] = set()
        """Names of files that were moved into the folder. The caller empties this set."""
        self.standing = True
        """False once the folder itself was removed or moved: a new folder of that name needs a new FolderNotifier."""
        try:
            _checked(_libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _WATCHED), folder)
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for a change. Return False if nothing changed, or if the only changes are new entries
        that are not complete yet; these end the wait, too.
        """
        return bool(self._poll.poll(seconds * 1000)) and self._has_change()

    def close(self) -> None:
        os.close(self._descriptor)
        self.standing = False

    def _has_change(self) -> bool:
        data = os.read(self._descriptor, _READ_BYTES)
        changed, offset = False, 0
        while offset < len(data):
            _, mask, _, length = _HEAD.unpack_from(data, offset)
            offset += _HEAD.size
            name = data[offset : offset + length].rstrip(b"\0")
            offset += length
            if mask & _MOVED_TO:
                self.moved_in.add(os.fsdecode(name))
            if mask & _GONE:
                self.standing = False
            changed = changed or not mask & _CREATE or self._complete(name)
        return changed

    def _complete(self, name: bytes) -> bool:
        """Whether an entry that was just created is complete: symbolic links, hard links and sockets are; a new regular
        file must first be written and closed. Other entries, such as folders, never count.
        """
        try:
            found = os.lstat(os.fsencode(self._folder) + b"/" + name)
        except OSError:
            return False
        whole = stat.S_ISLNK(found.st_mode) or stat.S_ISSOCK(found.st_mode)
        return whole or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1)


def _checked(result: int, folder: Path) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(folder))
    return result
