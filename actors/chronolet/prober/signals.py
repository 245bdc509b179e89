"""What a ProbeWorker tells its probe. `intent` is its effect's: what a worker says that is no longer wanted is passed
over.

Comes in: nothing. Goes out: Signal Structs. Next: `decider`.
"""

from __future__ import annotations

from chronolet_schemas.envelope import Signal
from chronolet_schemas.prober import Outcome


class ProbeOutcome(Signal, frozen=True, kw_only=True):
    """One probe, after all tries at it. `at` is when it began, by the agent's clock; it took `milliseconds`.

    `output` in the kubelet's words; of an exec or HTTP probe what it gave. `code` is its exit code or HTTP status.
    """

    intent: str
    outcome: Outcome
    at: int
    milliseconds: int
    output: str = ""
    code: int | None = None


class ProbeLate(Signal, frozen=True, kw_only=True):
    """A probe begins so much later than its time because too many are at work. At most one a minute and worker."""

    intent: str
    late_milliseconds: int
