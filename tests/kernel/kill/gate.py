"""A lock with which other threads pause one busy thread: the thread that closes the gate gets in next."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """The busy thread does each piece of work inside `passing`; other threads pause it with `closed`."""

    def __init__(self) -> None:
        self._turnstile = threading.Lock()
        self._lock = threading.Lock()

    @contextmanager
    def passing(self) -> Iterator[None]:
        with self._turnstile:
            pass
        with self._lock:
            yield

    @contextmanager
    def closed(self) -> Iterator[None]:
        with self._turnstile, self._lock:
            yield
