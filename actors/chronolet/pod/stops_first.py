"""Clean-ups make way for stops: who removes sixty pods waits for the last one to stop, not for what they leave behind.

Comes in: workers. Goes out: the same workers, of which some wait for the others. Next: `effects`.

A removal costs the engine about as much as a stop. Where both go on at a time, the last of ten pods stopped a fifth
later.
"""

from __future__ import annotations

import threading
from typing import Any

from chronolet.kernel.kind import EffectContext, Worker
from chronolet_schemas.envelope import Signal

LONGEST_SECONDS = 1.0
"""A clean-up waits no longer: a stop may take as long as its pod likes."""


class StopsFirst:
    """Of all pods of one process."""

    def __init__(self, longest_seconds: float = LONGEST_SECONDS) -> None:
        self._longest_seconds = longest_seconds
        self._changed = threading.Condition()
        self._stops = 0

    def stop(self, worker: Worker) -> Worker:
        """The worker, which others wait for."""

        def run(effect: Any, context: EffectContext) -> Signal | None:
            self._count(1)
            try:
                return worker(effect, context)
            finally:
                self._count(-1)

        return run

    def cleanup(self, worker: Worker) -> Worker:
        """The worker, which begins when no stop is under way."""

        def run(effect: Any, context: EffectContext) -> Signal | None:
            with self._changed:
                self._changed.wait_for(lambda: not self._stops, self._longest_seconds)
            return worker(effect, context)

        return run

    def _count(self, more: int) -> None:
        with self._changed:
            self._stops += more
            self._changed.notify_all()
