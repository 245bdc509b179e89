"""Read the kernel's log to find containers in which the OOM killer killed a process.

Input: /dev/kmsg. Output: `ports.machine.kernel_log.Kills`. Next: `pod`'s effects. A runtime detects such a kill through
a counter of the container's cgroup. If the cgroup is removed before the runtime reads the counter, only the line in the
kernel's log remains. The line is written before the process dies, and remains until the log's ring buffer is full.
Source: mm/oom_kill.c (dump_oom_victim), Documentation/ABI/testing/dev-kmsg.
"""

from __future__ import annotations

import os
import re
import threading

_RECORD_BYTES = 1 << 13
"""Larger than any record. Each read returns one record."""
_MOST = 10_000
_VICTIM = re.compile(rb";oom-kill:.*\btask_memcg=[^,]*?([0-9a-f]{64})")


class KernelLog:
    """Implements `ports.machine.kernel_log.Kills`. Thread-safe. While the log cannot be read, no further kills are
    found.
    """

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        self._killed: dict[str, None] = {}

    def named(self, container_id: str) -> bool:
        with self._lock:
            try:
                self._read()
            except OSError:
                self.close()
            return container_id in self._killed

    def why_not(self) -> str:
        with self._lock:
            try:
                self._read()
            except OSError as error:
                self.close()
                return f"{self._path}: {error.strerror}"
        return ""

    def close(self) -> None:
        """Close the log. The next read starts again with the oldest record."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self) -> None:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        while True:
            try:
                record = os.read(self._file, _RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # the next record has been overwritten: continue with the oldest one
            if not record:
                return
            self._note(record)

    def _note(self, record: bytes) -> None:
        found = victim(record)
        if found:
            self._killed[found] = None
            if len(self._killed) > _MOST:
                del self._killed[next(iter(self._killed))]


def victim(record: bytes) -> str:
    """Return the id of the container whose process was killed according to this record; empty for other records."""
    found = _VICTIM.search(record)
    return found[1].decode() if found else ""
