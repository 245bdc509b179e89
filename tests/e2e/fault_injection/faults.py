"""Faults of an agent under test: a recorder that writes down every crash point, and a killer that acts at one of them.

Input: announcements of kernel and effects, from any thread. Output: lines in a file, or a SIGKILL. Both write each
point with a single call, so that a kill leaves no partial line. A kill that has not happened yet can be cancelled.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Literal

from tests.e2e.fault_injection.points import Point, PointCounter
from tests.support import scratch

KillTarget = Literal["agent", "redis"]
_CANCELLED = "cancelled"


class Recorder:
    """Writes every crash point to a file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def point(self, name: str) -> None:
        os.write(self._file, f"{name}\n".encode())


class Killer:
    """Kills the agent itself or its redis-server when `point` is passed, after writing the file `marker`."""

    def __init__(self, point: Point, target: KillTarget, redis_pid: int, marker: Path) -> None:
        self._point = point
        self._target = target
        self._redis_pid = redis_pid
        self._marker = marker
        self._counter = PointCounter()
        self._lock = threading.Lock()

    def point(self, name: str) -> None:
        with self._lock:  # other threads wait here until the target is dead
            if self._point in self._counter.points(name):
                self._kill(name)

    def _kill(self, name: str) -> None:
        if not _write_first(self._marker, f"{time.time_ns() // 1_000_000} {name}"):
            return  # cancelled
        if self._target == "agent":
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(self._redis_pid, signal.SIGKILL)
        scratch.wait_until(lambda: scratch.start_time(self._redis_pid) is None, "the end of redis-server")


def cancel_kill(marker: Path) -> bool:
    """Cancel the kill. Returns False if the kill has happened, is about to happen, or was already cancelled."""
    return _write_first(marker, _CANCELLED)


def has_killed(marker: Path) -> bool:
    """Return whether the kill has happened."""
    return marker.exists() and marker.read_text() != _CANCELLED


def _write_first(marker: Path, text: str) -> bool:
    """Write the marker unless it exists, and return whether this call wrote it. Only the first writer decides about the
    kill.
    """
    unfinished = marker.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text)
    try:
        marker.hardlink_to(unfinished)
    except FileExistsError:
        return False
    return True
