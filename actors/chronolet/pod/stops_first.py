"""Stops go first: the processes of all pods end before sandboxes are stopped, and those before anything is removed.

Comes in: workers. Goes out: the same workers, of which some wait for others. Next: `effects`.

When many pods are removed at once, the end of a sandbox costs the engine as much as the end of an app (its network is
taken down), and a removal costs about as much again. Without an order, the last of sixty apps ended when nearly
everything else was done, too.
"""

from __future__ import annotations

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

_CONTAINERS, _SANDBOXES, _CLEANUPS = range(3)


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
        self._at_work: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
        """By rank, then by pod."""
        self._changed_at = clock()

    def containers(self, worker: Worker) -> Worker:
        """The worker, which stops a container and waits for no other."""
        return self._in_order(_CONTAINERS, worker)

    def sandboxes(self, worker: Worker) -> Worker:
        """The worker, which stops a sandbox, after the containers of all other pods. Those of its own have no process
        any more.
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
            try:
                return worker(effect, context)
            finally:
                with self._changed:
                    self._count(rank, effect.pod, -1)

        return run

    def _wait(self, rank: int, pod: str) -> None:
        """Until nothing of a lower rank is at work for other pods, or nothing of it has begun or ended for a while."""
        latest = self._clock() + self._longest_seconds
        while any(at_work.keys() - {pod} for at_work in self._at_work[:rank]):
            seconds = min(latest, self._changed_at + self._quiet_seconds) - self._clock()
            if seconds <= 0:
                return
            self._changed.wait(seconds)

    def _count(self, rank: int, pod: str, more: int) -> None:
        at_work = self._at_work[rank]
        at_work[pod] += more
        if not at_work[pod]:
            del at_work[pod]
        if rank < _CLEANUPS:
            self._changed_at = self._clock()
        if len(at_work) <= 1:  # nobody goes on before
            self._changed.notify_all()
