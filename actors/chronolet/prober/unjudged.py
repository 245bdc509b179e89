"""Limits how long time-outs that a stall explains stay unjudged before they count as failures. Pure.

Input: outcomes in order, times on a monotonic clock. Output: whether a time-out counts, and whether to report it. Next:
`probe_worker`; `decider` stores what was reported, so that a restarted agent continues from there.

    judged   -> (a time-out that a stall explains)                 unjudged; the first is reported
    unjudged -> (limit passed, after LEAST or more attempts)       time-outs count again, until a success
    unjudged -> (success)                                          judged

An unexplained failure does not end the run of unjudged attempts: the container has still not succeeded. Neither does an
error.
"""

from __future__ import annotations

LEAST = 3
"""Minimum number of unjudged attempts before a time-out counts, even if the limit has long passed."""
REPORT_MS = 15_000
"""Report interval of a run of unjudged attempts; a restart of the agent extends the run by at most this time."""


class Patience:
    """One worker's run of unjudged attempts. `now` is in milliseconds of a monotonic clock."""

    def __init__(self, limit: int, *, count: int = 0, passed: int = 0) -> None:
        """Continue a run: `count` attempts in `passed` milliseconds were already reported as unjudged."""
        self._limit = limit
        self._before = passed
        self._reported = passed
        self._since: int | None = None
        self.count = count

    def passed(self, now: int) -> int:
        """Return how long this run has lasted, in milliseconds."""
        return self._before + (now - self._since if self._since is not None else 0)

    def is_over(self, now: int) -> bool:
        """Whether the limit is used up, so that the next time-out counts as a failure."""
        return self.count >= LEAST and self.passed(now) >= self._limit

    def unjudged(self, now: int) -> bool:
        """Count one more unjudged attempt, and return whether to report it."""
        self.count += 1
        self._since = now if self._since is None else self._since
        if self.count > 1 and self.passed(now) - self._reported < REPORT_MS:
            return False
        self._reported = self.passed(now)
        return True

    def succeeded(self) -> bool:
        """End the run; return whether there was one."""
        if not self.count:
            return False
        self.count, self._before, self._reported, self._since = 0, 0, 0, None
        return True
