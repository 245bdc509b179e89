"""Which outcomes of a probe are news. A worker asks before it sends one, for most say what the last one said.

Comes in: outcomes. Goes out: yes or no. Next: the worker sends a ProbeOutcome, or keeps it to itself. The decider does
not rely on it: it passes over what changes nothing.
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import Outcome

REMINDER_MS = 300_000
"""How often an outcome that changes nothing is told all the same (the refill of client-go's spam filter)."""


def counts_as(outcome: Outcome) -> Literal["success", "failure", "error"]:
    """`success` or `failure`; `error` for what counts as neither."""
    match outcome:
        case "success" | "warning":
            return "success"
        case "failure" | "unknown":
            return "failure"
        case _:
            return "error"


class Streak:
    """What a worker told so far: one for each worker's life."""

    def __init__(self, definition: Probe) -> None:
        self._thresholds = {
            "success": definition.success_threshold,
            "failure": definition.failure_threshold,
            "error": 1,
        }
        self._last = ""
        self._told = 0
        self._told_at = 0

    def is_news(self, outcome: Outcome, at: int) -> bool:
        """Whether to send an outcome: not one beyond a threshold that was reached already, or only now and then."""
        word = counts_as(outcome)
        self._told = self._told if word == self._last else 0
        self._last = word
        if self._told >= self._thresholds[word] and 0 <= at - self._told_at < REMINDER_MS:
            return False
        self._told += 1
        self._told_at = at
        return True
