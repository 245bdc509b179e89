"""Shows the archive's current problem to the rest of the process: /readyz and a metric.

Input: the standing effect `ReportProblem`, which runs while the keeper's state has a problem. Output: the problem as
text. Next: `node.main`, `node.metrics.archive`.
"""

from __future__ import annotations

import threading

from chronolet.keeper import wanted
from chronolet.kernel.kind import EffectContext


class ArchiveProblem:
    """The current problem; empty if there is none, or if another process hosts the keeper."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[str, str] = {}

    def current(self) -> str:
        """Return the problem in one line. Never blocks."""
        return next(reversed(self._reports.copy().values()), "")

    def report(self, effect: wanted.ReportProblem, context: EffectContext) -> None:
        """Show the problem until the effect is cancelled."""
        with self._lock:
            self._reports[effect.intent] = effect.problem
        context.cancelled.wait()
        with self._lock:
            self._reports.pop(effect.intent, None)
