"""Orders the stops of all pods: containers before most sandboxes, and both before any removal.

Input: workers. Output: the same workers, some of which wait for others. Next: `effects`.

When many pods are removed together, stopping a sandbox costs the engine as much as stopping an app (its network is torn
down), and a removal costs about as much again. If no sandbox were stopped until all apps had ended, the apps would end
earlier but the pods later.
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
"""Maximum time that a worker waits; needed because stops may begin and end continuously."""
QUIET_SECONDS = 0.5
"""Maximum time that a worker waits after the last stop began or ended: the remaining stops wait out their grace
periods."""
MOST_SANDBOXES = 8
"""Limit on concurrent sandbox stops while containers of other pods are being stopped."""

_CONTAINERS, _SANDBOXES, _CLEANUPS = range(3)
_MOST_MEANWHILE = {_CONTAINERS: math.inf, _SANDBOXES: MOST_SANDBOXES, _CLEANUPS: 0}
"""Concurrency limit of each rank while work of a lower rank is in progress."""


class StopOrder:
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
        self._in_progress: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
        """The number of workers by rank and pod, including those that wait."""
        self._running = [0, 0, 0]
        """The number of workers by rank, excluding those that are waiting."""
        self._changed_at = clock()

    def containers(self, worker: Worker) -> Worker:
        """Wrap a worker that stops a container; it never waits."""
        return self._in_order(_CONTAINERS, worker)

    def sandboxes(self, worker: Worker) -> Worker:
        """Wrap a worker that stops a sandbox: at most MOST_SANDBOXES run at a time while containers of other pods are
        being stopped. Containers of the sandbox's pod do not count, because their processes have already ended.
        """
        return self._in_order(_SANDBOXES, worker)

    def cleanups(self, worker: Worker) -> Worker:
        """Wrap a worker that removes what remains of a pod; it waits for the stops of other pods, for as long as
        `_wait` allows.
        """
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
        """Wait until the worker may run, no stop begins or ends for the quiet period, or the maximum wait has ended."""
        latest = self._clock() + self._longest_seconds
        while not self._may_run(rank, pod):
            seconds = min(latest, self._changed_at + self._quiet_seconds) - self._clock()
            if seconds <= 0:
                return
            self._changed.wait(seconds)

    def _may_run(self, rank: int, pod: str) -> bool:
        if self._running[rank] < _MOST_MEANWHILE[rank]:
            return True
        return not any(in_progress.keys() - {pod} for in_progress in self._in_progress[:rank])

    def _count(self, rank: int, pod: str, more: int) -> None:
        in_progress = self._in_progress[rank]
        in_progress[pod] += more
        if not in_progress[pod]:
            del in_progress[pod]
        if rank < _CLEANUPS:
            self._changed_at = self._clock()
