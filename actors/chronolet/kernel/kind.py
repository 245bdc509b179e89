"""Defines an actor: a `Kind` with a pure `Decider`, routes for its messages, and workers for its effects.

Input: nothing. Output: the plain records that every actor's `actor.py` fills in. Next: `host`, which runs the actors,
and `history`, which folds their events without running them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from chronolet.kernel.decider import Decider, Due, Effect, EffectFailed
from chronolet.kernel.effects.pace import Pace
from chronolet_schemas.envelope import Command, Event, Message, Signal
from chronolet_schemas.times import Stamp

__all__ = [
    "Batcher",
    "Begun",
    "Decider",
    "Due",
    "Effect",
    "EffectContext",
    "EffectFailed",
    "EventDriven",
    "Job",
    "Kind",
    "Report",
    "Worker",
    "signals_of",
]

S = TypeVar("S")


class EffectContext(Protocol):
    """The part of the kernel that a worker may use while its effect runs."""

    @property
    def entity(self) -> str:
        """The entity's key."""

    @property
    def cause(self) -> str:
        """Position of the event that requested this effect. Workers store it in a label of the objects they create."""

    @property
    def resume(self) -> str:
        """The note that the same effect left at the shard's former owner when the shard was moved; else empty."""

    @property
    def token(self) -> str:
        """Fencing token of the shard that runs the effect, for store calls that only the owner may make."""

    @property
    def cancelled(self) -> threading.Event:
        """Set when the effect is no longer outstanding, its time-out has passed, or the process has lost the shard; for
        a standing effect, also when the lease lapses.
        """

    def fence(self, point: str) -> None:
        """Check that the effect may still act. Call this before every external call; `point` is that call's name.

        Raises `LostOwnership` if the effect was cancelled, or if the process's lease is not known to be valid according
        to this machine's time since boot. Also passes the crash point `effect/before <point>` (see `faults`).
        """

    def done(self, point: str) -> None:
        """Pass the crash point `effect/after <point>`. Call it after every external call that changed something."""

    def send(self, signal: Signal, *, cause: str = "") -> None:
        """Send a signal to the entity while the effect is running. `cause` becomes the cause of the resulting events;
        if it is empty, they get the effect's own cause.
        """


Worker = Callable[[Any, EffectContext], Signal | None]
"""A function that runs one effect. The worker of a one-shot returns the result as a signal; the worker of a standing
effect runs until `cancelled` is set, and returns None.

An expected refusal is a value in the result. If the worker of a one-shot raises, the decider receives `EffectFailed`;
if the worker of a standing effect raises, the effect is restarted with back-off.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """How the effects of one class are run. `timeout_seconds` is the time-out of a one-shot, or a function that
    computes it from the effect.
    """

    run: Worker
    timeout_seconds: float | Callable[[Any], float] = 60.0
    lane: Callable[[Any], str] | None = None
    """Computes the name of the one-shot's lane, a queue. One-shots in the same lane share a concurrency limit;
    one-shots in other lanes, or of other kinds, do not wait for them. All one-shots of a kind without this function
    share one lane.
    """
    limit: int | Pace | None = None
    """Concurrency limit of the lane; None means the default limit. All jobs of a lane must have the same value."""
    priority: Callable[[Any], tuple[Any, ...]] | None = None
    """Computes the effect's priority in the lane's queue: the smallest starts first, equal ones in order of arrival."""
    measure: Callable[[Any, Signal], str] | None = None
    """For a lane with a Pace: computes the name under which the effect's duration is recorded. The name is empty if the
    result does not show how long the work takes, for example if it is a refusal.
    """


Ended = Callable[[BaseException], None]
"""A callback that reports that a shared standing effect failed. It may be called from any thread."""


Report = Callable[[str, bool], None]
"""A callback of an effect that finishes because its shard moves: `report(note, over)`, from any thread. `note` is for
the same effect at the next owner (`EffectContext.resume`); it replaces an earlier one. `over`: the effect has ended.
"""


class Begun(NamedTuple):
    """A shared standing effect that can finish. `stop` ends it at once; `finish` lets it end by itself, after the call
    that it is making, and report that.
    """

    stop: Callable[[], None]
    finish: Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class EventDriven:
    """How a shared standing effect is run: without a thread of its own, on a loop shared by the effects of its class.

    `begin(effect, context, ended)` starts it and returns a function that stops it, or a `Begun`. The kernel calls
    `begin` and `finish` on the host's thread, and the stop function at most once, on any thread, when the effect is
    cancelled or the lease lapses; none of them may block. If `begin` raises, the effect has failed.
    """

    begin: Callable[[Any, EffectContext, Ended], Begun | Callable[[], None]]


EventRoute = Callable[[Any], Sequence[str]]
"""A pure function that returns the keys of the entities that an event or command concerns."""

Batcher = Callable[[Sequence[tuple[Stamp, Any]]], Message]
"""A pure function that combines several events, given oldest first with their positions and times, into a message."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[S]):
    """The complete definition of one actor kind.

    All fields except `effects`, `standing` and `ahead` are pure, and they are enough to fold history.
    """

    name: str
    shards: int
    state: type[S]
    format: int
    """Number of the snapshot format. Snapshots with another number are ignored."""
    decider: Decider[S]
    commands: Mapping[type[Command], EventRoute] = field(default_factory=dict)
    subscribes: Mapping[type[Event], EventRoute] = field(default_factory=dict)
    batches: Mapping[type[Event], Batcher] = field(default_factory=dict)
    """How to combine subscribed events that may arrive in bursts. Adjacent waiting events that have the same type and
    concern the same entities are combined into one message, together with their positions.
    """
    creates: frozenset[type[Message]] = frozenset()
    """Messages that may create an entity. Other messages for an unknown entity are skipped, except commands, which are
    always decided.
    """
    signals: frozenset[type[Signal]] = frozenset()
    """The signals that the kind's effects send, so that recorded ones can be read. Every kind gets `EffectFailed`."""
    timeless: frozenset[type[Message]] = frozenset()
    """Messages whose decision does not depend on the time, in any state. For these, the time is not recorded."""
    at_start: tuple[str, ...] = ()
    """Keys of entities that exist from the beginning, in the state `initial` (for kinds whose only entity is the node).
    """
    watches_clock: bool = False
    """Whether this kind's host records jumps of the wall clock relative to the monotonic clock, the loss of a log, and
    foreign data in the log as events. Exactly one kind per node does so.
    """
    commits_when_full: bool = False
    """Whether this kind's steps are committed even if the server has reached its maxmemory, because they lead to memory
    being freed.
    """
    precedence: int = 5
    """Order in which hosts start, lowest first. pleg and pod start first, because a container may have died while no
    process was running.
    """
    ahead: Callable[[], None] | None = None
    """Called after a shard is acquired and before it is recovered, to prefetch the data that its effects will read
    first. Must not block, and must not change anything.
    """
    effects: Mapping[type[Effect], Job] = field(default_factory=dict)
    standing: Mapping[type[Effect], Job | EventDriven] = field(default_factory=dict)


def signals_of(module: ModuleType) -> frozenset[type[Signal]]:
    """Return the signals that a module defines."""
    return frozenset(
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Signal) and one.__module__ == module.__name__
    )
