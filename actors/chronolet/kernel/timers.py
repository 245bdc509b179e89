"""Timers on the monotonic clock: one thread that sleeps until the next one rings.

Comes in: a delay and what to do then. Goes out: the call, on the timers' thread; it must be short. Next: `host`,
`effects`.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger("chronolet.kernel")

FEW = 64
"""Cancelled timers up to this number may stay in the heap until they are due."""


class Timer:
    """A timer that may be cancelled."""

    __slots__ = ("_cancelled", "action")

    def __init__(self, action: Callable[[], None], cancelled: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action
        self._cancelled = cancelled

    def cancel(self) -> None:
        """Forget it. One that rings at this very moment may still ring."""
        if self.action is not None:
            self.action = None
            self._cancelled()


class Timers:
    """All timers of a process."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._serial = itertools.count()
        self._dead = 0
        """Cancelled timers in the heap, or a few more: one that rang before it was cancelled is counted too."""
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """The number of timers kept, with cancelled ones that have not been dropped yet."""
        with self._changed:
            return len(self._heap)

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` in so many seconds (at once if negative)."""
        timer = Timer(action, self._cancelled)
        with self._changed:
            heapq.heappush(self._heap, (time.monotonic() + max(seconds, 0.0), next(self._serial), timer))
            if self._heap[0][2] is timer:
                self._changed.notify()
        return timer

    def _cancelled(self) -> None:
        """Drop cancelled timers when they are many: a hook may take days, and most end within a second."""
        with self._changed:
            self._dead += 1
            if self._dead > max(FEW, len(self._heap) // 2):
                self._heap = [entry for entry in self._heap if entry[2].action is not None]
                heapq.heapify(self._heap)
                self._dead = 0

    def stop(self) -> None:
        """No timer rings after this."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (timer := self._next()) is not None:
            action = timer.action
            if action is None:
                continue
            try:
                action()
            except Exception:
                # The other timers of the process must ring all the same.
                log.exception("a timer's action failed")

    def _next(self) -> Timer | None:
        with self._changed:
            while not self._stopped:
                while self._heap and self._heap[0][2].action is None:
                    heapq.heappop(self._heap)
                    self._dead = max(self._dead - 1, 0)
                wait = self._heap[0][0] - time.monotonic() if self._heap else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(wait)
        return None
