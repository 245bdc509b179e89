"""The kernel's only source of time. `now` never goes backwards, not even across a restart of the process.

The state folder stores the previous process's time. If it is missing there, the time of the last log entry is used
instead. That time comes from the server's clock, which may be wrong by hours, so a process with a stored time ignores
it (docs/adr/0021).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

JUMP_SECONDS = 1.0


class Clock:
    """Wall time in milliseconds that never goes backwards.

    While the wall clock is behind the last reading, time continues from that reading at the pace of the monotonic
    clock. So the time elapsed since a stored timestamp stays correct when the wall clock is set back.
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
        """Return the milliseconds since the Unix epoch."""
        with self._lock:
            wall, monotonic = int(self._wall() * 1000), self._monotonic()
            if wall >= self._last:
                self._last, self._last_monotonic = wall, monotonic
            else:  # keep the fraction for the next call, else frequent calls would stop the clock
                passed = int((monotonic - self._last_monotonic) * 1000)
                self._last, self._last_monotonic = self._last + passed, self._last_monotonic + passed / 1000
            return self._last

    def at_least(self, milliseconds: int) -> None:
        """Advance to `milliseconds` if the clock is behind, for example after a timer on the monotonic clock fired."""
        with self._lock:
            if milliseconds > self._last:
                self._last, self._last_monotonic = milliseconds, self._monotonic()

    def resume(self, milliseconds: int) -> None:
        """Continue from `milliseconds`, the time that this node's previous process reached; 0 if a new log begins. From
        now on, `advance_to_log` is ignored.
        """
        self._resumed = True
        self.at_least(milliseconds)

    def advance_to_log(self, milliseconds: int) -> None:
        """Advance to `milliseconds`, the time of the last log entry by the server's clock. Ignored after `resume`: this
        time is used only if the previous process's time was not stored.
        """
        if not self._resumed:
            self.at_least(milliseconds)

    def jump(self) -> int:
        """Return by how many milliseconds the wall clock has jumped relative to the monotonic clock since the last
        call; 0 if by less than 1 s.
        """
        least, most = self._offset_bounds()
        known_least, known_most = self._offset
        drift = max(least - known_most, 0.0) or min(most - known_least, 0.0)
        if abs(drift) < JUMP_SECONDS:
            return 0
        # Adjust only by the reported jump: if a stall has hidden part of it, the next call reports that part.
        self._offset = (known_least + drift, known_most + drift)
        return round(drift * 1000)

    def _offset_bounds(self) -> tuple[float, float]:
        """Return a lower and an upper bound of wall clock minus monotonic clock, in seconds. They differ because this
        thread may stall between two readings, and a stall is not a jump.
        """
        before = self._monotonic()
        wall = self._wall()
        return wall - self._monotonic(), wall - before
