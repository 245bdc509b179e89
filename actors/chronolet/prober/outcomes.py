"""Decides what a probe's outcome counts as, whether to retry the attempt, and whether to send the outcome. Pure.

Input: outcomes. Output: these decisions. Next: `workers.probe_worker`, which sends a ProbeOutcome or drops it,
since most outcomes repeat the last one. The decider does not rely on this filter: it ignores outcomes that change
nothing.
"""

from __future__ import annotations

from typing import Literal, assert_never

from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import Outcome

MOST_ATTEMPTS = 3
REMINDER_MS = 300_000
"""Interval at which an outcome that only repeats earlier ones is sent again (the refill interval of client-go's spam
filter).
"""


def counts_as(outcome: Outcome) -> Literal["success", "failure", "error", "unjudged"]:
    """Return what an outcome counts as: `success`, `failure`, or neither (`error`, `unjudged`)."""
    match outcome:
        case "success" | "warning":
            return "success"
        case "failure" | "unknown":
            return "failure"
        case "error" | "unjudged":
            return outcome
        case _:
            assert_never(outcome)


def should_retry(outcome: Outcome, attempt: int) -> bool:
    """Whether attempt number `attempt` (counted from 1) is followed immediately by another. Only an error of the probe
    itself is retried, never a failure. Source: pkg/kubelet/prober/prober.go (runProbeWithRetries).
    """
    return outcome == "error" and attempt < MOST_ATTEMPTS


class Streak:
    """A worker's filter for outcomes that only repeat those that it has sent. One instance per worker."""

    def __init__(self, definition: Probe) -> None:
        self._thresholds = {
            "success": definition.success_threshold,
            "failure": definition.failure_threshold,
            "error": 1,
            "unjudged": 1,
        }
        self._short = False
        self._last = ""
        self._sent = 0
        self._sent_at = 0

    def is_news(self, outcome: Outcome, at: int, *, short: bool = False) -> bool:
        """Decide whether to send an outcome, and remember it. Once the outcomes of one kind (`counts_as`) that were
        sent in a row reach their threshold, further ones are sent only once per REMINDER_MS.

        A failure during a shortage (`short`) may have delayed consequences, so the first one without a shortage is
        sent, too. `at` is in milliseconds.
        """
        counted = counts_as(outcome)
        self._sent = self._sent if counted == self._last else 0
        self._last = counted
        relieved = counted == "failure" and self._short and not short
        if self._sent >= self._thresholds[counted] and 0 <= at - self._sent_at < REMINDER_MS and not relieved:
            return False
        self._short = short
        self._sent += 1
        self._sent_at = at
        return True
