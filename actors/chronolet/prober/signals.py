"""What a ProbeWorker tells its probe. `intent` is its effect's: what a worker says that is no longer wanted is passed
over.

Comes in: nothing. Goes out: Signal Structs. Next: `decider`.
"""

from __future__ import annotations

from chronolet_schemas.envelope import Signal
from chronolet_schemas.prober import Outcome, Shortage


class ProbeOutcome(Signal, frozen=True, kw_only=True):
    """One probe, after all tries at it. `at` is when it began, by the agent's clock; it took `milliseconds`.

    `output` in the kubelet's words; of an exec or HTTP probe what it gave. `code` is its exit code or HTTP status.
    `short_of` is what the machine is short of at present; of an unjudged outcome, what explains it: a stall of
    `stalled_milliseconds`. `unjudged` of these came in a row, within `unjudged_milliseconds`.
    """

    intent: str
    outcome: Outcome
    at: int
    milliseconds: int
    output: str = ""
    code: int | None = None
    short_of: tuple[Shortage, ...] = ()
    stalled_milliseconds: int = 0
    unjudged: int = 0
    unjudged_milliseconds: int = 0


class ProbeLate(Signal, frozen=True, kw_only=True):
    """A probe begins so much later than its time; for `agent_late_milliseconds` the agent did not run, else too
    many are at work. At most one a minute and worker.
    """

    intent: str
    late_milliseconds: int
    agent_late_milliseconds: int = 0
