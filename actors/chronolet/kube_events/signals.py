"""What the kube_events actor is told in memory: KubeEvents of the log, gathered, and what the sinks answer.

Comes in: entries (`heard`), results of `effects`. Goes out: Signal Structs. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet_schemas.envelope import Position, Signal
from chronolet_schemas.kube_events import Recorded


class Heard(Signal, frozen=True, kw_only=True):
    """Neighbouring `kube_events.Recorded` of the log with their positions, oldest first; at least one."""

    events: tuple[tuple[Position, Recorded], ...]


class Refused(Signal, frozen=True, kw_only=True):
    """A sink's last word on one post: it will not have it."""

    name: str
    error: str


class SinkAnswered(Signal, frozen=True, kw_only=True):
    """What became of the first posts of a `Deliver`, in their order.

    The first `delivered + known + len(refused)` of them are settled. With a `failure` the one behind those was tried in
    vain.
    """

    subject: str
    intent: str
    delivered: int = 0
    refused: tuple[Refused, ...] = ()
    failure: str = ""
    known: int = 0


def heard(events: Sequence[tuple[Position, Recorded]]) -> Heard:
    """See `Kind.batches`."""
    return Heard(events=tuple(events))
