"""How long time-outs that a stall explains count as nothing, and when they count after all. Pure.

Comes in: outcomes in order, a clock that nobody sets. Goes out: what each one counts as, and whether it is news. Next:
`worker`; `decider` keeps what was reported, so that a restarted agent goes on from there.

    judged   -> (a time-out that a stall explains)                      unjudged, the first is news
    unjudged -> (the limit has passed, and LEAST of them at least)      failures again, until a success
    unjudged -> (success)                                               judged

A failure that nothing explains does not end the run: the container has still not succeeded. An error says nothing.
"""

from __future__ import annotations

LEAST = 3
"""Unjudged attempts before a time-out counts after all, however long the limit has passed."""
REPORT_MS = 15_000
"""How often a run of unjudged attempts is reported, and so the most that a restart of the agent can add to it."""


class Patience:
    """Of one worker. `now` in milliseconds, by a monotonic clock."""

    def __init__(self, limit: int, *, count: int = 0, passed: int = 0) -> None:
        """`count` attempts in `passed` milliseconds were unjudged already, as far as was reported."""
        self._limit = limit
        self._before = passed
        self._reported = passed
        self._since: int | None = None
        self.count = count

    def passed(self, now: int) -> int:
        """For how long this run has lasted."""
        return self._before + (now - self._since if self._since is not None else 0)

    def is_over(self, now: int) -> bool:
        """Whether the next time-out counts as a failure after all."""
        return self.count >= LEAST and self.passed(now) >= self._limit

    def unjudged(self, now: int) -> bool:
        """One more; whether it is to be reported."""
        self.count += 1
        self._since = now if self._since is None else self._since
        if self.count > 1 and self.passed(now) - self._reported < REPORT_MS:
            return False
        self._reported = self.passed(now)
        return True

    def succeeded(self) -> bool:
        """The run is over; whether there was one."""
        if not self.count:
            return False
        self.count, self._before, self._reported, self._since = 0, 0, 0, None
        return True
