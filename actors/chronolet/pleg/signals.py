"""Signals from pleg's standing effects: what they observe in the runtime.

Output: Signal Structs, only about containers with this node's label. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from chronolet_schemas.envelope import Message, Signal


class ContainerObserved(Signal, frozen=True, kw_only=True):
    """One observation of a container, from a line of the event stream or an inspect. `container` is POD for a sandbox.

    `state`: created, running, exited, removed (noticed, or confirmed by a 404) or unknown. `detailed` is False if
    `started_at` is the time of a start notice, not the exact start time. Times are milliseconds of the runtime's clock,
    0 if unknown. `sent` and `sent_at` have the same meaning as in `pleg.ContainerDied`.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    id: str
    state: Literal["created", "running", "exited", "removed", "unknown"]
    exit_code: int = 0
    reason: str = ""
    started_at: int = 0
    finished_at: int = 0
    detailed: bool = True
    sent: tuple[int, ...] | None = None
    sent_at: int = 0


class Unread(Message, frozen=True, kw_only=True):
    """A pod with a container whose inspect failed or is stuck."""

    pod: str
    uid: str
    error: str


class StreamOpened(Signal, frozen=True, kw_only=True):
    """The event stream is open. `server`: the engine's name and version; `first`: whether it is the process's first
    stream.
    """

    server: str
    first: bool = False
    boot_id: str = ""
    endpoint: str = ""
    engine_id: str = ""


class StreamBroken(Signal, frozen=True, kw_only=True):
    """The event stream broke or cannot be opened."""

    error: str


class OomKilled(Signal, frozen=True, kw_only=True):
    """A process of the container was killed for lack of memory. If that ends the container, a separate observation
    reports its death.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    id: str


class Relisted(Signal, frozen=True, kw_only=True):
    """A successful listing that began at `began_at` (milliseconds of the agent's clock).

    `observed`: the inspected containers: those of pods in which a container is new, changed or gone, or could not be
    inspected; all of them if notices may have been missed. A 404 proves that a container is gone, because an id is
    never reused. `unread`: pods with a failed inspect, which the next listing repeats. `count`: the number of
    containers in the whole listing. `partial`: whether the rest of the listing follows; a pod missing from `unread` may
    then still be unreadable.
    """

    began_at: int
    count: int
    observed: Sequence[ContainerObserved] = ()
    unread: Sequence[Unread] = ()
    partial: bool = False


class RelistFailed(Signal, frozen=True, kw_only=True):
    """Listing the containers failed. `last_listed_at` and `threshold_milliseconds` have the same meaning as in
    `pleg.RelistFailing`.
    """

    error: str
    last_listed_at: int = 0
    threshold_milliseconds: int = 0
