"""What waits for a host: filled from many threads, emptied by the host's own.

The host's pykka inbox only ever holds a wake-up; what it is woken for waits here, so that everything that came
meanwhile can be folded into one step (DESIGN 3.3).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue that wakes its owner once for all that is put in before it looks."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None
        self._woken = False

    def open(self, wake: Callable[[], None]) -> None:
        """From now on `wake` is called when something waits; at once, if something does already."""
        with self._lock:
            self._wake = wake
            self._woken = bool(self._items)
        if self._woken:
            wake()

    def put(self, *items: T) -> None:
        """Add at the end."""
        self._put(items)

    def nudge(self) -> None:
        """Wake the owner though nothing was added."""
        self._put(())

    def take(self, limit: int, alone: Callable[[T], bool] | None = None) -> list[T]:
        """At most `limit` items from the front; one that is to be `alone` is the only one. The owner then asks `rearm`
        whether to look again.
        """
        taken: list[T] = []
        with self._lock:
            while self._items and len(taken) < limit:
                single = alone is not None and alone(self._items[0])
                if single and taken:
                    break
                taken.append(self._items.popleft())
                if single:
                    break
        return taken

    def __len__(self) -> int:
        return len(self._items)

    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._items

    def rearm(self) -> bool:
        """The owner has looked: True if it must look again by itself, else the next `put` wakes it."""
        with self._lock:
            self._woken = bool(self._items)
            return self._woken

    def _put(self, items: tuple[T, ...]) -> None:
        with self._lock:
            self._items.extend(items)
            wake = None if self._woken else self._wake
            self._woken = self._woken or wake is not None
        if wake is not None:
            wake()
