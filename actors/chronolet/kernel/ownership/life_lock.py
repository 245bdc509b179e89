"""The life lock: a file lock in the state folder that proves to other processes on the machine that its owner is dead.

Input: the folder, the name of a process. Output: a lock that the operating system releases when the process dies; the
proof, as read by others. Next: `claims`, `membership`, `sharing`; `death_watch`, which waits for locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

_PROBED_SECONDS = 0.5
"""How long to try to lock a file that another process may be probing; a live owner never releases it."""
_PAUSE_SECONDS = 0.01


class NameTaken(Exception):  # noqa: N818 - the condition's name
    """Another live process has this process's name. The text says which one, and what to do."""


class LifeLock:
    """An exclusive lock on `<folder>/<process>.lock`, which holds the process's instance. Raises NameTaken if a live
    process holds it.

    `former`: the instance of the dead process that held the lock last; empty if there was none.
    """

    def __init__(self, folder: Path, process: str, instance: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{process}.lock"
        self._file = self._locked(process)
        self.former = instance_in(self._file)
        os.ftruncate(self._file, 0)
        try:
            os.pwrite(self._file, instance.encode(), 0)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            # The file then names no instance and proves nothing: others wait for a time-to-live.

    def _locked(self, process: str) -> int:
        deadline = time.monotonic() + _PROBED_SECONDS
        while True:
            file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            if _is_free(file, fcntl.LOCK_EX) and _is_at(self._path, file):
                return file
            # Other processes probe the lock of a dead one for a moment, or have just removed its file.
            os.close(file)
            if time.monotonic() > deadline:
                raise NameTaken(
                    f"process name {process!r} is taken: a running process of this machine holds {self._path}; stop"
                    " that process, or give this one another --process-name"
                )
            time.sleep(_PAUSE_SECONDS)

    def release(self) -> None:
        """Remove the lock's file and release the lock, on a clean stop."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def sweep(folder: Path | None, alive: Container[str]) -> None:
    """Remove the lock files of dead processes that are not in `alive`, i.e. whose lease keys no longer exist. While
    such a key exists, the file is kept, because it proves the death immediately.
    """
    for path in folder.glob("*.lock") if folder is not None else ():
        if path.stem not in alive:
            with _probed(path) as instance:
                if instance is not None:
                    path.unlink(missing_ok=True)


def proven_dead(folder: Path | None, process: str, instance: str = "") -> bool:
    """Whether `process` ran on this machine and is dead: its lock file exists and is not locked.

    `instance`: the instance that the node's list of members has under that name; empty for a process of an older
    release. The file proves only the death of the instance that it names: a process of that name may have moved to
    another machine.
    """
    if folder is None or not process:
        return False
    with _probed(folder / f"{process}.lock") as found:
        return found is not None and found == instance


@contextmanager
def _probed(path: Path) -> Iterator[str | None]:
    """Yield the instance in a lock file that no process holds, and keep others from locking it meanwhile; None if it is
    held, does not exist, or cannot be opened (for example because the agent has no descriptor left): then it proves
    nothing.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        # Shared: two processes that probe at the same time do not take each other for the owner.
        yield instance_in(file) if _is_free(file, fcntl.LOCK_SH) else None
    finally:
        os.close(file)


def _is_free(file: int, mode: int) -> bool:
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def instance_in(file: int) -> str:
    """Return the instance that an open lock file names; empty if it names none."""
    return os.pread(file, 100, 0).decode("ascii", "replace")


def _is_at(path: Path, file: int) -> bool:
    """Whether the path still names this open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
