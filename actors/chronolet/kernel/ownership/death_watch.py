"""Notices the death of another process of this machine at once, without polling: a thread waits for its life lock.

Input: the folder of the life locks; the listed processes with their instances. Output: a call when one of them has died
or stopped. It is only a hint to look: `sharing` reads the lock again. Next: `supervisor`.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from chronolet.kernel.ownership.life_lock import instance_in

_Instance = tuple[str, str]
"""The name of a process, and its instance."""


class DeathWatch:
    """The threads of one process that wait for the locks of others. `died` is called on such a thread."""

    def __init__(self, folder: Path | None, died: Callable[[], None]) -> None:
        self._folder = folder
        self._died = died
        self._lock = threading.Lock()
        self._waiting: set[_Instance] = set()
        self._over: set[_Instance] = set()
        """The listed instances that have died, or cannot be watched."""

    def watch(self, processes: Mapping[str, str]) -> None:
        """Wait for the death of these processes, given as names with their instances, each once. A process whose lock
        file is missing, unreadable or of another instance is not watched: regular looks notice its death.
        """
        if self._folder is None:
            return
        with self._lock:
            self._over &= processes.items()
            new = processes.items() - self._over - self._waiting
            self._waiting |= new
        for one in new:
            if not self._begin(self._folder / f"{one[0]}.lock", one):
                self._end(one)

    def watches(self, processes: Mapping[str, str]) -> bool:
        """Return whether each of these processes runs on this machine and is watched."""
        with self._lock:
            return processes.items() <= self._waiting

    def _begin(self, path: Path, one: _Instance) -> bool:
        """Start a thread that waits for the lock; return False if that is not possible or makes no sense."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if instance_in(file) == one[1]:
                thread = threading.Thread(target=self._wait, args=(file, one), name=f"life of {one[0]}", daemon=True)
                thread.start()
                return True
        except (OSError, RuntimeError):  # RuntimeError: the system is out of threads or memory
            pass
        os.close(file)
        return False

    def _wait(self, file: int, one: _Instance) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
        finally:
            os.close(file)
            self._end(one)
        self._died()

    def _end(self, one: _Instance) -> None:
        with self._lock:
            self._waiting.discard(one)
            self._over.add(one)
