"""When the supervisor looks at the members and the owners of the shards, besides its regular ticks.

Input: what the last look left open; changes of the members, from any thread. Output: `Look` notices, at most one at a
time, and `MembersChanged` notices, one for all changes until it is handled. Next: `supervisor`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from chronolet.kernel.effects.timers import Timer, Timers
from chronolet.kernel.hosting.notices import Look, MembersChanged
from chronolet.kernel.timing import Timing

READINGS_PER_RENEWAL = 3
"""How often the counters of processes on other machines are read per renewal of their leases, ticks included. A death
there is proven a time-to-live after the first reading of its process's last counter.
"""
_LATER_SECONDS = 0.002
"""Added to the time of a proof, which takes a reading that is asked for after a whole time-to-live."""


class Looks:
    """The looks to come. `tell` sends a notice to the supervisor, from any thread."""

    def __init__(
        self, timers: Timers, timing: Timing, renewal_seconds: float, tell: Callable[[Look | MembersChanged], None]
    ) -> None:
        self._after = timers.after
        self._soon_seconds = renewal_seconds / timing.looks_per_renewal
        self._reading_seconds = renewal_seconds / READINGS_PER_RENEWAL
        self._awaited_seconds = timing.awaited_look_seconds
        self._tell = tell
        self._planned: tuple[float, Timer] | None = None
        """When the next look is due, on the monotonic clock, and its timer."""
        self._awaits = False
        self._change_pending = False

    def begin(self, notice: Look | MembersChanged) -> None:
        """Note that a notice is being handled, before the look: what happens from now on needs another one."""
        if isinstance(notice, Look):
            self._planned = None
        elif notice.awaited:
            self._awaits = False
        else:
            self._change_pending = False

    def plan_soon(self) -> None:
        """Look soon, because something is open."""
        self._plan(self._soon_seconds)

    def plan_reading(self, proof_seconds: float | None, *, often: bool) -> None:
        """Look when a reading of the counters may prove a death, in `proof_seconds`, if that is not None; and `often`,
        between two ticks.
        """
        moments = [self._reading_seconds] if often else []
        if proof_seconds is not None:
            moments.append(proof_seconds + _LATER_SECONDS)
        if moments:
            self._plan(min(moments))

    def _plan(self, seconds: float) -> None:
        due = time.monotonic() + seconds
        if self._planned is not None:
            if self._planned[0] <= due:
                return
            self._planned[1].cancel()
        self._planned = due, self._after(seconds, lambda: self._tell(Look()))

    def await_release(self) -> None:
        """Look very soon, because another process is about to release a shard for this one."""
        if not self._awaits:
            self._awaits = True
            self._after(self._awaited_seconds, lambda: self._tell(MembersChanged(awaited=True)))

    def members_changed(self) -> None:
        """Look immediately."""
        if not self._change_pending:
            self._change_pending = True
            self._tell(MembersChanged())
