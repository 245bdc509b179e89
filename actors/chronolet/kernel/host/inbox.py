"""A host's queue of items: many threads add to it, the host's own thread empties it.

The host's pykka inbox contains only a wake-up message. The items wait here, so that one step can take all items that
have arrived in the meantime.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue that wakes its owner for the first item added, and not again until the owner has called `rearm`."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None
        self._woken = False
        self._nudged = False
        """Whether a nudge arrived after the owner was woken. The current turn may have made its checks already."""
        self._waiting_since = 0.0

    def open(self, wake: Callable[[], None]) -> None:
        """Call `wake` when items arrive from now on, and immediately if items are already waiting."""
        with self._lock:
            self._wake = wake
            self._woken = bool(self._items)
        if self._woken:
            wake()

    def put(self, *items: T) -> None:
        """Add items at the end."""
        self._put(items)

    def nudge(self) -> None:
        """Make the owner take another turn, without adding an item."""
        self._put((), nudges=True)

    def take(self, limit: int, alone: Callable[[T], bool] | None = None) -> list[T]:
        """Remove and return up to `limit` items from the front. An item for which `alone` returns True is returned by
        itself. The owner calls `rearm` at the end of its turn.
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
            self._waiting_since = time.monotonic()
        return taken

    def __len__(self) -> int:
        return len(self._items)

    def waiting(self) -> list[T]:
        """Return the items that are waiting, oldest first, and leave them there."""
        with self._lock:
            return list(self._items)

    def seconds_waiting(self) -> float:
        """Return for how long items have been waiting since the owner last took some; 0 if none is waiting."""
        with self._lock:
            return time.monotonic() - self._waiting_since if self._items else 0.0

    def idle(self) -> bool:
        """Whether no items are waiting."""
        return not self._items

    def rearm(self) -> bool:
        """Finish a turn. Returns True if the owner must wake itself, because items remain or it was nudged during the
        turn; else the next `put` wakes it.
        """
        with self._lock:
            self._woken, self._nudged = bool(self._items) or self._nudged, False
            return self._woken

    def _put(self, items: tuple[T, ...], *, nudges: bool = False) -> None:
        with self._lock:
            self._nudged |= nudges and self._woken
            if not self._items:
                self._waiting_since = time.monotonic()
            self._items.extend(items)
            wake = None if self._woken else self._wake
            self._woken = self._woken or wake is not None
        if wake is not None:
            wake()
