"""Writes the lines of the agent's own log to standard error.

Input: lines, from any thread. Output: bytes to the stream's descriptor. Next: people and log shippers.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from typing import TextIO


class LogLines:
    """The logger that structlog calls for each line. No method raises.

    A log that cannot be written (its disk is full, its pipe has no reader) must not end the logging thread, which may
    be the one that renews the lease.
    """

    def __init__(self, stream: TextIO, notice: Callable[[int], str]) -> None:
        """`notice` formats a line that reports the number of lost lines."""
        self._stream = stream
        self._notice = notice
        self._encoding = stream.encoding or "utf-8"
        self._lock = threading.Lock()
        self._lost = 0
        self._is_cut = False

    def msg(self, line: str) -> str:
        """Write a line; if earlier lines were lost, write the notice first. Returns the error, or an empty string if
        the line was written.
        """
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
        """Write a line without buffering: a buffer that cannot be flushed would raise later, in unrelated code."""
        rest = memoryview(f"{chr(10) * self._is_cut}{line}\n".encode(self._encoding, "backslashreplace"))
        try:
            descriptor = self._stream.fileno()
        except io.UnsupportedOperation:  # not backed by a file descriptor
            self._stream.write(f"{line}\n")
            return
        while rest:
            written = os.write(descriptor, rest)
            rest = rest[written:]
            self._is_cut = bool(rest)
