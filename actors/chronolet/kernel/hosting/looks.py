"""When the supervisor looks at the members and the owners of the shards, besides its regular ticks.

Input: what the last look left open; changes of the members, from any thread. Output: `Look` and `MembersChanged`
notices, at most one of each at a time. Next: `supervisor`.
"""

from __future__ import annotations

from collections.abc import Callable

from chronolet.kernel.effects.timers import Timers
from chronolet.kernel.hosting.notices import Look, MembersChanged
from chronolet.kernel.timing import Timing


class Looks:
    """The looks to come. `tell` sends a notice to the supervisor, from any thread."""

    def __init__(
        self, timers: Timers, timing: Timing, renewal_seconds: float, tell: Callable[[Look | MembersChanged], None]
    ) -> None:
        self._after = timers.after
        self._seconds = renewal_seconds / timing.looks_per_renewal
        self._awaited_seconds = timing.awaited_look_seconds
        self._tell = tell
        self._planned = False
        self._awaits = False
        self._change_pending = False

    def begin(self, notice: Look | MembersChanged) -> None:
        """Note that a notice is being handled, before the look: what happens from now on needs another one."""
        if isinstance(notice, Look):
            self._planned = False
        elif notice.awaited:
            self._awaits = False
        else:
            self._change_pending = False

    def plan(self) -> None:
        """Look before the next tick, because something is open."""
        if not self._planned:
            self._planned = True
            self._after(self._seconds, lambda: self._tell(Look()))

    def await_release(self) -> None:
        """Look soon, because another process is about to release a shard for this one."""
        if not self._awaits:
            self._awaits = True
            self._after(self._awaited_seconds, lambda: self._tell(MembersChanged(awaited=True)))

    def members_changed(self) -> None:
        """Look immediately. One notice covers all changes until it is handled."""
        if not self._change_pending:
            self._change_pending = True
            self._tell(MembersChanged())
