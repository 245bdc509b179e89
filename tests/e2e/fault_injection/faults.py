"""Faults of an agent under test: one that writes down every point, and one that kills at one of them.

Input: announcements of kernel and effects, from any thread. Output: lines in a file, or a kill -9. Both write
each point by one call, so that a kill leaves whole lines. A blow that has not fallen yet can be called off.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Literal

from tests.e2e.fault_injection.points import Counting, Point
from tests.support import scratch

Victim = Literal["agent", "redis"]
_SPARED = "spared"


class Recorder:
    """Writes down every point."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def point(self, name: str) -> None:
        os.write(self._file, f"{name}\n".encode())


class Striker:
    """Kills the agent itself, or its redis-server, when `point` is passed. `struck` is written before the blow."""

    def __init__(self, point: Point, victim: Victim, redis_pid: int, struck: Path) -> None:
        self._point = point
        self._victim = victim
        self._redis_pid = redis_pid
        self._struck = struck
        self._counting = Counting()
        self._lock = threading.Lock()

    def point(self, name: str) -> None:
        with self._lock:  # whoever comes here meanwhile waits until the victim is dead
            if self._point in self._counting.points(name):
                self._strike(name)

    def _strike(self, name: str) -> None:
        if not _is_first(self._struck, f"{time.time_ns() // 1_000_000} {name}"):
            return  # called off
        if self._victim == "agent":
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(self._redis_pid, signal.SIGKILL)
        scratch.wait_until(lambda: scratch.start_time(self._redis_pid) is None, "the end of redis-server")


def spare(struck: Path) -> bool:
    """Call the blow off. False if it has fallen, or is about to."""
    return _is_first(struck, _SPARED)


def has_fallen(struck: Path) -> bool:
    """Whether the blow was struck."""
    return struck.exists() and struck.read_text() != _SPARED


def _is_first(struck: Path, word: str) -> bool:
    """Whether nobody else has had the last word on the blow."""
    unfinished = struck.with_suffix(f".{os.getpid()}")
    unfinished.write_text(word)
    try:
        struck.hardlink_to(unfinished)
    except FileExistsError:
        return False
    return True
