"""In-memory messages to the kube_events actor: batches of KubeEvents from the log, and delivery results.

Input: log entries (`batch`), results from `effects`. Output: Signal Structs. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet_schemas.envelope import Signal
from chronolet_schemas.kube_events import Recorded
from chronolet_schemas.times import Stamp


class RecordedBatch(Signal, frozen=True, kw_only=True):
    """A batch of consecutive `kube_events.Recorded` with their positions and times, oldest first; at least one."""

    events: tuple[tuple[Stamp, Recorded], ...]


class RejectedPost(Signal, frozen=True, kw_only=True):
    """A post that a sink rejected permanently."""

    name: str
    error: str


class DeliveryResult(Signal, frozen=True, kw_only=True):
    """The result of a `Deliver`: what became of its first posts.

    The first `delivered + known + len(refused)` posts are settled; `known` is the number of posts that the sink already
    had under their names. If `failure` is set, the attempt to deliver the next post failed.
    """

    subject: str
    intent: str
    delivered: int = 0
    refused: tuple[RejectedPost, ...] = ()
    failure: str = ""
    known: int = 0


def batch(events: Sequence[tuple[Stamp, Recorded]]) -> RecordedBatch:
    """Build a batch; see `Kind.batches`."""
    return RecordedBatch(events=tuple(events))
