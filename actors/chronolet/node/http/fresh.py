"""A value that many ask for and that costs something to make.

Input: how to make it. Output: the value, not older than it may be; made by one thread at a time, however many ask.
Next: `pages`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class BusyError(Exception):
    """It is being made, and takes longer than anybody should wait."""


class Fresh(Generic[T]):
    """`seconds`: how old it may be. `patience`: how long to wait for somebody else who makes it."""

    def __init__(self, make: Callable[[], T], seconds: float, patience: float) -> None:
        self._make = make
        self._seconds = seconds
        self._patience = patience
        self._lock = threading.Lock()
        self._made: tuple[float, T] | None = None

    def get(self) -> T:
        """What `make` raises is raised, and tried again by the next who asks."""
        if not self._lock.acquire(timeout=self._patience):
            raise BusyError
        try:
            if self._made is None or time.monotonic() - self._made[0] > self._seconds:
                self._made = None
                self._made = (time.monotonic(), self._make())
            return self._made[1]
        finally:
            self._lock.release()


class Written(Generic[S, T]):
    """What is written of a value that others replace: once for each value, however many ask."""

    def __init__(self, latest: Callable[[], S], write: Callable[[S], T]) -> None:
        self._latest = latest
        self._write = write
        self._lock = threading.Lock()
        self._made: tuple[S, T] | None = None

    def get(self) -> T:
        """What `latest` raises is raised."""
        value = self._latest()
        with self._lock:
            if self._made is None or self._made[0] is not value:
                self._made = None  # a page may be large: the old one goes first
                self._made = (value, self._write(value))
            return self._made[1]
