"""How long tasks on this machine have waited for resources, as counted by Linux.

Input: none. Output: `Waited`, totals that only grow. Next: `delays`. Sources: /proc/pressure (pressure stall
information), or else the same files in the root of cgroup v2; without either, CPU pressure is estimated from the number
of runnable tasks. /proc/self/task/<tid>/schedstat contains the time that a thread has waited in the run queue.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog

log = structlog.get_logger("chronolet.probes")

_RESOURCES = ("cpu", "memory", "io")
_FOLDERS = (Path("/proc/pressure"), Path("/sys/fs/cgroup"))
_SUFFIXES = ("", ".pressure")
_SOME_TOTAL = re.compile(rb"some .*total=(\d+)")
_READ = 256


class Waited(NamedTuple):
    """Seconds of waiting since an arbitrary moment. `queue`: by the calling thread in its run queue; `cpu`, `memory`,
    `io`: by at least one task for that resource.
    """

    queue: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    io: float = 0.0


class Pressure:
    """Reads the totals for `Waited`. Must be used on one thread: the first call decides whose run queue is read."""

    def __init__(self, folders: Sequence[Path] = _FOLDERS, clock: Callable[[], float] = time.monotonic) -> None:
        self._folders = folders
        self._clock = clock
        self._files: dict[str, int] | None = None
        self._crowded = 0.0
        self._looked_at = clock()
        self._last = Waited()

    def waited(self) -> Waited:
        """Return the current totals. A file that cannot be opened counts as 0. If a file cannot be read or parsed,
        return the last totals, because this must not fail a probe.
        """
        try:
            self._last = self._read()
        except (OSError, ValueError, IndexError):
            log.debug("cannot read pressure files; using the last totals", exc_info=True)
        return self._last

    def _read(self) -> Waited:
        files = self._files = self._files if self._files is not None else self._open()
        stalls = [_stall_seconds(files[name]) if name in files else 0.0 for name in _RESOURCES]
        if "cpu" not in files and "load" in files:
            stalls[0] = self._crowd_seconds(files["load"])
        return Waited(_queue_seconds(files["queue"]) if "queue" in files else 0.0, *stalls)

    def close(self) -> None:
        """Close all files."""
        files, self._files = self._files or {}, {}
        for descriptor in files.values():
            os.close(descriptor)

    def _open(self) -> dict[str, int]:
        places = {
            name: [folder / f"{name}{suffix}" for folder in self._folders for suffix in _SUFFIXES]
            for name in _RESOURCES
        }
        places["queue"] = [Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")]
        places["load"] = [Path("/proc/loadavg")]
        found = {name: _opened(paths) for name, paths in places.items()}
        return {name: descriptor for name, descriptor in found.items() if descriptor is not None}

    def _crowd_seconds(self, descriptor: int) -> float:
        """Add the share of the time since the last call in which runnable tasks had no processor; return the total."""
        now = self._clock()
        runnable = int(os.pread(descriptor, _READ, 0).split()[3].partition(b"/")[0])
        short = max(1 - (os.cpu_count() or 1) / max(runnable, 1), 0.0)
        self._crowded += short * (now - self._looked_at)
        self._looked_at = now
        return self._crowded


def _opened(paths: Sequence[Path]) -> int | None:
    """Open the first readable path; None if there is none. Without pressure stall information in the kernel, its files
    may exist but be unreadable.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.pread(descriptor, _READ, 0)
            except OSError:
                os.close(descriptor)
                continue
            return descriptor
    return None


def _stall_seconds(descriptor: int) -> float:
    found = _SOME_TOTAL.search(os.pread(descriptor, _READ, 0))
    return int(found[1]) / 1e6 if found else 0.0


def _queue_seconds(descriptor: int) -> float:
    return int(os.pread(descriptor, _READ, 0).split()[1]) / 1e9
