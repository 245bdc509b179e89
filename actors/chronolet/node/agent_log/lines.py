"""The lines of the agent's own log on their way to standard error.

Comes in: lines, from any thread. Goes out: bytes to the stream's descriptor. Next: people, and log shippers.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from typing import TextIO


class LogLines:
    """What structlog calls for each line; no method of it raises.

    A log that cannot be written (its disk is full, its pipe has no reader) must not end the thread that has
    something to report: that may be the one that renews the lease.
    """

    def __init__(self, stream: TextIO, notice: Callable[[int], str]) -> None:
        """`notice` makes a line of its own out of the number of lines that were lost."""
        self._stream = stream
        self._notice = notice
        self._encoding = stream.encoding or "utf-8"
        self._lock = threading.Lock()
        self._lost = 0
        self._is_cut = False

    def msg(self, line: str) -> str:
        """Why the line could not be written; empty if it was. Before the next one that can be comes the notice."""
        with self._lock:
            try:
                if self._lost:
                    self._write(self._notice(self._lost))
                    self._lost = 0
                self._write(line)
            except OSError as error:
                self._lost += 1
                return f"standard error: {error.strerror or error}"
        return ""

    log = debug = info = warn = warning = error = critical = exception = fatal = failure = msg

    def _write(self, line: str) -> None:
        """Past every buffer: what a buffer could not get rid of would fail later, in another's hands."""
        rest = memoryview(f"{chr(10) * self._is_cut}{line}\n".encode(self._encoding, "backslashreplace"))
        try:
            descriptor = self._stream.fileno()
        except io.UnsupportedOperation:  # not a file of the machine's
            self._stream.write(f"{line}\n")
            return
        while rest:
            written = os.write(descriptor, rest)
            rest = rest[written:]
            self._is_cut = bool(rest)
