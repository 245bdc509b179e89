"""The timers of one host's entities: each entity's `due`, kept as one timer.

Comes in: what is due when, after each commit. Goes out: rings, as inputs for the host's inbox; one that the state has
moved on from is told by `rang`. Called by the host's own thread; only the rings come from the timers'. Next: `host`.
"""

from __future__ import annotations

from collections.abc import Callable

from chronolet.kernel.effects.timers import Timer, Timers
from chronolet.kernel.kind import Due
from chronolet.kernel.step.ledger import Input
from chronolet_schemas.envelope import START

AGAIN_SECONDS = 30.0
"""After a ring went to the dead letters: its entity must not stay without a timer, nor fail the host all the time."""


class EntityTimers:
    """At most one timer for each entity."""

    def __init__(self, kind: str, timers: Timers, deliver: Callable[[Input], None]) -> None:
        self._type = f"{kind}.Due"
        self._timers = timers
        self._deliver = deliver
        self._armed: dict[str, tuple[int, Timer]] = {}

    def arm(self, key: str, due: int | None, now: int) -> None:
        """Ring when an entity is due (in milliseconds, as `now`), and at no other time."""
        armed = self._armed.get(key)
        if armed is not None and armed[0] == due:
            return
        if armed is not None:
            armed[1].cancel()
            del self._armed[key]
        if due is not None:
            self._set(key, due, (due - now) / 1000)

    def rang(self, key: str, due: Due) -> bool:
        """Take a ring that has come; False if the state has moved on since this timer rang."""
        if not self._waits_for(key, due):
            return False
        del self._armed[key]
        return True

    def ring_again(self, key: str, due: Due) -> None:
        """A ring was given up: once more later, unless the state has moved on since."""
        if self._waits_for(key, due):
            self._set(key, due.at, AGAIN_SECONDS)

    def ring(self, key: str, due: int) -> Input:
        """What a timer delivers."""
        return Input("due", START, (key,), Due(at=due), "", self._type)

    def stop(self) -> None:
        """Ring no more."""
        for _, timer in self._armed.values():
            timer.cancel()

    def _waits_for(self, key: str, due: Due) -> bool:
        armed = self._armed.get(key)
        return armed is not None and armed[0] == due.at

    def _set(self, key: str, due: int, seconds: float) -> None:
        ring = self.ring(key, due)
        self._armed[key] = due, self._timers.after(seconds, lambda: self._deliver(ring))
