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


class DeathWatch:
    """The threads of one process that wait for the locks of others. `died` is called on such a thread."""

    def __init__(self, folder: Path | None, died: Callable[[], None]) -> None:
        self._folder = folder
        self._died = died
        self._watched: dict[str, str] = {}

    def watch(self, processes: Mapping[str, str]) -> None:
        """Wait for the death of these processes, given as names with their instances, each once. A process whose lock
        file is missing, unreadable or of another instance is not watched.
        """
        if self._folder is None:
            return
        self._watched = {name: instance for name, instance in self._watched.items() if processes.get(name) == instance}
        for name, instance in processes.items():
            if name not in self._watched:
                self._watched[name] = instance
                self._start(self._folder / f"{name}.lock", instance)

    def _start(self, path: Path, instance: str) -> None:
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # it runs on another machine, or this process has no descriptor left: regular looks are enough
            return
        if not instance or instance_in(file) != instance:
            os.close(file)
            return
        threading.Thread(target=self._wait, args=(file,), name=f"life of {path.stem}", daemon=True).start()

    def _wait(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
        finally:
            os.close(file)
        self._died()
