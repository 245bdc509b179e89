"""Stops go first: containers of all pods before most sandboxes, and both before anything is removed.

Comes in: workers. Goes out: the same workers, of which some wait for others. Next: `effects`.

When many pods are removed at once, the end of a sandbox costs the engine as much as the end of an app (its network is
taken down), and a removal costs about as much again. If no sandbox is stopped until all apps have ended,
the apps end earlier and the pods later.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from chronolet.kernel.kind import EffectContext, Worker
from chronolet_schemas.envelope import Signal

LONGEST_SECONDS = 5.0
"""A worker waits no longer than this: stops may begin and end all the time."""
QUIET_SECONDS = 0.5
"""Nor longer than this after the last stop has begun or ended: those that are left wait out their grace periods."""
MOST_SANDBOXES = 8
"""Limit on concurrent sandbox stops while containers of other pods are being stopped."""

_CONTAINERS, _SANDBOXES, _CLEANUPS = range(3)
_MOST_MEANWHILE = {_CONTAINERS: math.inf, _SANDBOXES: MOST_SANDBOXES, _CLEANUPS: 0}
"""How many of a rank run while something of a lower rank is under way."""


class StopsFirst:
    """The order of the stops and clean-ups of all pods of one process. Thread-safe."""

    def __init__(
        self,
        longest_seconds: float = LONGEST_SECONDS,
        quiet_seconds: float = QUIET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._longest_seconds = longest_seconds
        self._quiet_seconds = quiet_seconds
        self._clock = clock
        self._changed = threading.Condition()
        self._under_way: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
        """By rank, then by pod; those that wait are among them."""
        self._running = [0, 0, 0]
        """By rank, without those that wait."""
        self._changed_at = clock()

    def containers(self, worker: Worker) -> Worker:
        """The worker, which stops a container and waits for no other."""
        return self._in_order(_CONTAINERS, worker)

    def sandboxes(self, worker: Worker) -> Worker:
        """The worker, which stops a sandbox: a few at a time while containers of other pods are being stopped. Those of
        its own pod have no process any more.
        """
        return self._in_order(_SANDBOXES, worker)

    def cleanups(self, worker: Worker) -> Worker:
        """The worker, which removes what is left of a pod, after all stops."""
        return self._in_order(_CLEANUPS, worker)

    def _in_order(self, rank: int, worker: Worker) -> Worker:
        def run(effect: Any, context: EffectContext) -> Signal | None:
            with self._changed:
                self._count(rank, effect.pod, 1)
                self._wait(rank, effect.pod)
                self._running[rank] += 1
            try:
                return worker(effect, context)
            finally:
                with self._changed:
                    self._running[rank] -= 1
                    self._count(rank, effect.pod, -1)
                    self._changed.notify_all()

        return run

    def _wait(self, rank: int, pod: str) -> None:
        """Until it may run, or nothing that it waits for has begun or ended for a while."""
        latest = self._clock() + self._longest_seconds
        while not self._may_run(rank, pod):
            seconds = min(latest, self._changed_at + self._quiet_seconds) - self._clock()
            if seconds <= 0:
                return
            self._changed.wait(seconds)

    def _may_run(self, rank: int, pod: str) -> bool:
        if self._running[rank] < _MOST_MEANWHILE[rank]:
            return True
        return not any(under_way.keys() - {pod} for under_way in self._under_way[:rank])

    def _count(self, rank: int, pod: str, more: int) -> None:
        under_way = self._under_way[rank]
        under_way[pod] += more
        if not under_way[pod]:
            del under_way[pod]
        if rank < _CLEANUPS:
            self._changed_at = self._clock()
