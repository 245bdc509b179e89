"""Caches for values that are expensive to compute and requested concurrently.

Input: a function that computes the value. Output: the value, no older than allowed; computed by one thread at a time.
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
    """Another thread is still computing the value, and waiting for it timed out."""


class Cached(Generic[T]):
    """A cached value. `seconds`: maximum age. `patience`: seconds to wait for a concurrent refresh."""

    def __init__(self, make: Callable[[], T], seconds: float, patience: float) -> None:
        self._make = make
        self._seconds = seconds
        self._patience = patience
        self._lock = threading.Lock()
        self._made: tuple[float, T] | None = None

    def get(self) -> T:
        """Return the value, recomputed if it is too old. Raises BusyError, and whatever `make` raises; the next call
        then retries.
        """
        if not self._lock.acquire(timeout=self._patience):
            raise BusyError
        try:
            if self._made is None or time.monotonic() - self._made[0] > self._seconds:
                self._made = None
                self._made = (time.monotonic(), self._make())
            return self._made[1]
        finally:
            self._lock.release()


class Rendered(Generic[S, T]):
    """Caches the serialized form of a value that is replaced from time to time: each new value is serialized once."""

    def __init__(self, latest: Callable[[], S], write: Callable[[S], T]) -> None:
        self._latest = latest
        self._write = write
        self._lock = threading.Lock()
        self._made: tuple[S, T] | None = None

    def get(self) -> T:
        """Return the serialized form of the latest value. Raises whatever `latest` or `write` raises."""
        value = self._latest()
        with self._lock:
            if self._made is None or self._made[0] is not value:
                self._made = None  # a page may be large: release the old one first
                self._made = (value, self._write(value))
            return self._made[1]
