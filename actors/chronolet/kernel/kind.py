"""Defines an actor: a `Kind` with a pure `Decider`, routes for its messages, and workers for its effects.

Input: nothing. Output: the plain records that every actor's `actor.py` fills in. Next: `host`, which runs them,
and `history`, which folds their events without running anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from chronolet.kernel.decider import Decider, Due, Effect, EffectFailed
from chronolet.kernel.effects.pace import Pace
from chronolet_schemas.envelope import Command, Event, Message, Position, Signal

__all__ = [
    "Batcher",
    "Decider",
    "Due",
    "Effect",
    "EffectContext",
    "EffectFailed",
    "EventDriven",
    "Job",
    "Kind",
    "Worker",
]

S = TypeVar("S")


class EffectContext(Protocol):
    """The part of the kernel that a worker may use while its effect runs."""

    @property
    def entity(self) -> str:
        """The entity's key."""

    @property
    def cause(self) -> str:
        """Position of the event that requested this effect. Workers put it in a label of the objects they create."""

    @property
    def token(self) -> str:
        """Fencing token of the shard that runs the effect, for store calls that only the owner may make."""

    @property
    def cancelled(self) -> threading.Event:
        """Set when the effect is no longer outstanding, its time-out passed, or the process lost its shard."""

    def fence(self, point: str) -> None:
        """Check that the effect may still act. Call it before every external call, with the call's name.

        Raises `LostOwnership` if the effect was cancelled, or if the process's lease is not known to be valid by the
        process's own monotonic clock. Also passes the crash point `effect/before <point>` (see `faults`).
        """

    def done(self, point: str) -> None:
        """Pass the crash point `effect/after <point>`. Call it after every external call that changed something."""

    def send(self, signal: Signal, *, cause: str = "") -> None:
        """Send the entity a signal while the effect runs. `cause` becomes the cause of the resulting events; the
        default is the effect's own cause.
        """


Worker = Callable[[Any, EffectContext], Signal | None]
"""Runs one effect. A one-shot worker returns its result signal; a standing one runs until `cancelled`, returns None.

An expected refusal is a value in the result. If a worker raises, a one-shot's decider receives `EffectFailed`, and a
standing effect is restarted with back-off.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """How an effect class runs. `timeout_seconds` is a one-shot's time-out, or computes it from the effect."""

    run: Worker
    timeout_seconds: float | Callable[[Any], float] = 60.0
    lane: Callable[[Any], str] | None = None
    """Computes the name of the one-shot's queue. One-shots of a lane share a concurrency limit; other lanes, and other
    kinds, do not wait for them.
    """
    limit: int | Pace | None = None
    """Concurrency limit of the lane; None: the default limit. All jobs of a lane must have the same value."""
    priority: Callable[[Any], tuple[Any, ...]] | None = None
    """Computes the effect's place in the lane's queue: smallest first, first come first served among equals."""
    measure: Callable[[Any, Signal], str] | None = None
    """For a lane with a Pace: the name under which the effect's duration is recorded. Empty for a result that does not
    show how long the work takes, such as a refusal.
    """


Ended = Callable[[BaseException], None]
"""Reports that a shared standing effect failed. May be called from any thread."""


@dataclass(frozen=True, slots=True)
class EventDriven:
    """How a shared standing effect runs: without a thread of its own, on a loop that the effects of its class share.

    `begin(effect, context, ended)` starts it and returns a function that stops it. The kernel calls both on the host's
    thread, so neither may block. If `begin` raises, the effect has failed. The stop function is called once, when the
    effect is cancelled.
    """

    begin: Callable[[Any, EffectContext, Ended], Callable[[], None]]


EventRoute = Callable[[Any], Sequence[str]]
"""Pure: returns the keys of the entities that an event or command concerns."""

Batcher = Callable[[Sequence[tuple[Position, Any]]], Message]
"""Pure: combines several events, given with their positions and oldest first, into one message."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[S]):
    """The complete definition of one actor kind.

    Everything but `effects`, `standing` and `ahead` is pure and suffices to fold history.
    """

    name: str
    shards: int
    state: type[S]
    format: int
    """The snapshot format's number. A snapshot with another number is ignored."""
    decider: Decider[S]
    commands: Mapping[type[Command], EventRoute] = field(default_factory=dict)
    subscribes: Mapping[type[Event], EventRoute] = field(default_factory=dict)
    batches: Mapping[type[Event], Batcher] = field(default_factory=dict)
    """Subscribed events that may arrive in bursts. Adjacent waiting events of one type that concern the same entities
    are combined into one message, which also carries their positions.
    """
    creates: frozenset[type[Message]] = frozenset()
    """Messages that may create an entity. Other messages for an unknown entity are skipped, except commands, which are
    always decided.
    """
    at_start: tuple[str, ...] = ()
    """Keys of entities that exist from the beginning, in state `initial` (for kinds whose entity is the node)."""
    watches_clock: bool = False
    """Whether this kind's host records clock jumps (wall clock against monotonic clock), the loss of a log, and foreign
    data in the log as events. Exactly one kind per node does.
    """
    commits_when_full: bool = False
    """Whether this kind's steps are committed even if the server has reached its maxmemory: they lead to freed memory.
    """
    precedence: int = 5
    """Start order, lowest first. pleg and pods start first, because a container may have died in the meantime."""
    ahead: Callable[[], None] | None = None
    """Called after a shard is acquired and before it is recovered, to prefetch what its effects will read first. Must
    not block, and must not change anything.
    """
    effects: Mapping[type[Effect], Job] = field(default_factory=dict)
    standing: Mapping[type[Effect], Job | EventDriven] = field(default_factory=dict)
