"""Timers on the monotonic clock: one thread that sleeps until the next timer is due.

Input: a delay and a callback. Output: a call of the callback, which must return quickly, on the timer thread. Next:
`host`, `effects`.
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
"""Number of cancelled timers that may stay in the heap until they are due, however small the heap is."""


class Timer:
    """One pending callback, which can be cancelled."""

    __slots__ = ("_cancelled", "action")

    def __init__(self, action: Callable[[], None], cancelled: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action
        self._cancelled = cancelled

    def cancel(self) -> None:
        """Drop the callback. If it is due at this moment, it may still run."""
        if self.action is not None:
            self.action = None
            self._cancelled()


class Timers:
    """All timers of a process."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._serial = itertools.count()
        self._dead = 0
        """Number of cancelled timers in the heap. May be too high, because a timer that is cancelled after it fired is
        also counted.
        """
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Return the number of timers in the heap, including cancelled ones that have not been dropped yet."""
        with self._changed:
            return len(self._heap)

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` after `seconds`; immediately if that is negative. Returns the timer."""
        timer = Timer(action, self._cancelled)
        with self._changed:
            heapq.heappush(self._heap, (time.monotonic() + max(seconds, 0.0), next(self._serial), timer))
            if self._heap[0][2] is timer:
                self._changed.notify()
        return timer

    def _cancelled(self) -> None:
        """Count a cancelled timer, and drop all cancelled timers from the heap if there are too many of them: a
        time-out may be days away, while most effects end soon.
        """
        with self._changed:
            self._dead += 1
            if self._dead > max(FEW, len(self._heap) // 2):
                self._heap = [entry for entry in self._heap if entry[2].action is not None]
                heapq.heapify(self._heap)
                self._dead = 0

    def stop(self) -> None:
        """Stop the thread; no callback runs after this returns."""
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
                # A failed callback must not stop the process's other timers.
                log.exception("timer callback failed")

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
