"""Which outcomes of a probe are news. A worker asks before it sends one, for most say what the last one said.

Comes in: outcomes. Goes out: yes or no. Next: the worker sends a ProbeOutcome, or keeps it to itself. The decider does
not rely on it: it passes over what changes nothing.
"""

from __future__ import annotations

from typing import Literal, assert_never

from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import Outcome

REMINDER_MS = 300_000
"""How often an outcome that changes nothing is told all the same (the refill of client-go's spam filter)."""


def counts_as(outcome: Outcome) -> Literal["success", "failure", "error", "unjudged"]:
    """`success` or `failure`; `error` or `unjudged` for what counts as neither."""
    match outcome:
        case "success" | "warning":
            return "success"
        case "failure" | "unknown":
            return "failure"
        case "error" | "unjudged":
            return outcome
        case _:
            assert_never(outcome)


class Streak:
    """What a worker told so far: one for each worker's life."""

    def __init__(self, definition: Probe) -> None:
        self._thresholds = {
            "success": definition.success_threshold,
            "failure": definition.failure_threshold,
            "error": 1,
            "unjudged": 1,
        }
        self._short = False
        self._last = ""
        self._told = 0
        self._told_at = 0

    def is_news(self, outcome: Outcome, at: int, *, short: bool = False) -> bool:
        """Whether to send an outcome: not one beyond a threshold that was reached already, or only now and then.

        A failure while the machine is `short` of something may wait for its consequences: one without that is news.
        """
        word = counts_as(outcome)
        self._told = self._told if word == self._last else 0
        self._last = word
        relieved = word == "failure" and self._short and not short
        if self._told >= self._thresholds[word] and 0 <= at - self._told_at < REMINDER_MS and not relieved:
            return False
        self._short = short
        self._told += 1
        self._told_at = at
        return True
