"""The one place where the kernel reads clocks. `now` never goes back, not even behind that of the process before.

The process before is known by what the state folder remembers, else by the times in the log. Those are the server's: a
process that knows its own time does not follow them, for the server's clock may be wrong by hours (docs/adr/0021).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

JUMP_SECONDS = 1.0


class Clock:
    """Wall time in milliseconds. Where the wall clock falls behind what was already said, the monotonic clock goes on
    from there: a time that was stored before the wall clock went back stays its own distance away.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last = 0
        self._resumed = False
        self._last_monotonic = monotonic()
        self._offset = self._offset_bounds()

    def now(self) -> int:
        """Milliseconds since the epoch."""
        with self._lock:
            wall, monotonic = int(self._wall() * 1000), self._monotonic()
            if wall >= self._last:
                self._last, self._last_monotonic = wall, monotonic
            else:  # whole milliseconds only, or those who ask often would make time stand still
                passed = int((monotonic - self._last_monotonic) * 1000)
                self._last, self._last_monotonic = self._last + passed, self._last_monotonic + passed / 1000
            return self._last

    def at_least(self, milliseconds: int) -> None:
        """Time is known to have come this far: a timer on the monotonic clock rang."""
        with self._lock:
            if milliseconds > self._last:
                self._last, self._last_monotonic = milliseconds, self._monotonic()

    def resume(self, milliseconds: int) -> None:
        """So far the time of this node's processes had come; 0 if there was none before."""
        self._resumed = True
        self.at_least(milliseconds)

    def advance_to_log(self, milliseconds: int) -> None:
        """So far the log goes, by the server's clock: all that is known of an earlier process that left no time."""
        if not self._resumed:
            self.at_least(milliseconds)

    def jump(self) -> int:
        """By how many milliseconds wall and monotonic clock parted since this was last asked; 0 below a second."""
        least, most = self._offset_bounds()
        known_least, known_most = self._offset
        parted = max(least - known_most, 0.0) or min(most - known_least, 0.0)
        if abs(parted) < JUMP_SECONDS:
            return 0
        # No more than what was told: what a stall hid of it is told by the next look.
        self._offset = (known_least + parted, known_most + parted)
        return round(parted * 1000)

    def _offset_bounds(self) -> tuple[float, float]:
        """Between what values the wall clock is ahead of the monotonic one: this thread may stand still between any two
        looks at a clock, and that is no jump of either.
        """
        before = self._monotonic()
        wall = self._wall()
        return wall - self._monotonic(), wall - before
