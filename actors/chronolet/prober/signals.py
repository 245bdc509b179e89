"""Signals from a ProbeWorker to its probe. `intent` is that of the effect; signals of an obsolete effect are ignored.

Output: Signal Structs. Next: `decider`.
"""

from __future__ import annotations

from chronolet_schemas.envelope import Signal
from chronolet_schemas.prober import Outcome, Shortage

LONGEST_OUTPUT = 1024
"""Maximum number of characters of an outcome's output: the limit of a KubeEvent's message."""


class ProbeOutcome(Signal, frozen=True, kw_only=True):
    """The outcome of one probe, after all its attempts. `at`: when it began, on the agent's clock; it took
    `milliseconds`.

    `output`: the output of an exec or HTTP probe, else a text in the kubelet's wording; at most LONGEST_OUTPUT of it.
    `code`: exit code or HTTP status. `short_of`: for a failure that may stop the container, the machine's current
    shortages; for an unjudged outcome, the shortages that explain it, together with a stall of `stalled_milliseconds`;
    otherwise empty. `unjudged`: the number of consecutive unjudged outcomes, within `unjudged_milliseconds`.
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
    """A probe has begun `late_milliseconds` after its scheduled time, or has been waiting so long to begin. Sent at
    most once a minute per worker.

    For `agent_late_milliseconds` of this time, the agent was not running; the remainder is due to too many concurrent
    probes.
    """

    intent: str
    late_milliseconds: int
    agent_late_milliseconds: int = 0
