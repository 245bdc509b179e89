"""The timers of one host's entities: one timer per entity, set to the entity's `due`.

Input: the `due` of each changed entity, after each commit. Output: `Due` messages for the host's inbox; `accept`
filters out stale ones. Called on the host's own thread, except for the delivery, which runs on the timer thread. Next:
`host`.
"""

from __future__ import annotations

from collections.abc import Callable

from chronolet.kernel.effects.timers import Timer, Timers
from chronolet.kernel.kind import Due
from chronolet.kernel.step.input import Input
from chronolet_schemas.envelope import START


class EntityTimers:
    """Manages at most one timer per entity."""

    def __init__(self, kind: str, timers: Timers, deliver: Callable[[Input], None], *, retry_seconds: float) -> None:
        """`retry_seconds`: see `Timing.due_retry_seconds`."""
        self._type = f"{kind}.Due"
        self._timers = timers
        self._deliver = deliver
        self._retry_seconds = retry_seconds
        self._armed: dict[str, tuple[int, Timer]] = {}

    def arm(self, key: str, due: int | None, now: int) -> None:
        """Set the entity's only timer to `due`; None cancels it. `due` and `now` are in milliseconds."""
        armed = self._armed.get(key)
        if armed is not None and armed[0] == due:
            return
        if armed is not None:
            armed[1].cancel()
            del self._armed[key]
        if due is not None:
            self._set(key, due, (due - now) / 1000)

    def accept(self, key: str, due: Due) -> bool:
        """Consume a `Due` that has arrived. Returns False if it is stale because the entity's due time has changed."""
        if not self._waits_for(key, due):
            return False
        del self._armed[key]
        return True

    def retry(self, key: str, due: Due) -> None:
        """Schedule another delivery of a `Due` that was given up, after `retry_seconds`, unless it is stale."""
        if self._waits_for(key, due):
            self._set(key, due.at, self._retry_seconds)

    def message(self, key: str, due: int) -> Input:
        """Return the message that an entity's timer delivers."""
        return Input("due", START, (key,), Due(at=due), "", self._type)

    def stop(self) -> None:
        """Cancel all timers."""
        for _, timer in self._armed.values():
            timer.cancel()

    def _waits_for(self, key: str, due: Due) -> bool:
        armed = self._armed.get(key)
        return armed is not None and armed[0] == due.at

    def _set(self, key: str, due: int, seconds: float) -> None:
        message = self.message(key, due)
        self._armed[key] = due, self._timers.after(seconds, lambda: self._deliver(message))
