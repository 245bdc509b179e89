"""What an actor is: a `Kind` with a pure `Decider`, routes for what reaches it, and workers for the effects it asks
for.

Comes in: nothing. Goes out: the plain records that every actor's `actor.py` fills in. Next: `host`, which runs them,
and `history`, which folds them without running anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from chronolet.kernel.decider import Decider, Due, Effect, EffectFailed
from chronolet.kernel.effects.pace import Pace
from chronolet_schemas.envelope import Command, Event, Message, Position, Signal

__all__ = ["Decider", "Due", "Effect", "EffectContext", "EffectFailed", "Gather", "Job", "Kind", "Tended", "Worker"]

S = TypeVar("S")


class EffectContext(Protocol):
    """What a worker may use of the kernel while its effect runs."""

    @property
    def entity(self) -> str:
        """The entity's key."""

    @property
    def cause(self) -> str:
        """The position of the event that asked for this effect: worth handing on, in a label, to what it makes."""

    @property
    def token(self) -> str:
        """The token of the shard that runs the effect, for calls to the store that only its owner may make."""

    @property
    def cancelled(self) -> threading.Event:
        """Set when the effect is no longer wanted or the process lost its shard."""

    def fence(self, point: str) -> None:
        """To be called before every outside call, with the call's name.

        Raises `LostOwnership` if the process's lease is not known to be valid by its own monotonic clock, or if the
        effect was cancelled. Also the crash point `point` of the Faults port.
        """

    def done(self, point: str) -> None:
        """To be called after every outside call that changed something: the crash point behind it."""

    def send(self, signal: Signal, *, cause: str = "") -> None:
        """Tell the entity something in the middle of the effect. `cause` replaces the effect's own in what follows."""


Worker = Callable[[Any, EffectContext], Signal | None]
"""Runs one effect. A one-shot's answer is its result signal; a standing one runs until `cancelled` and returns None.

An expected refusal is a value in the result; what a worker raises reaches the decider as `EffectFailed` (one-shot) or
is started again with back-off (standing).
"""


@dataclass(frozen=True, slots=True)
class Job:
    """How an effect class is run. `timeout_seconds` bounds a one-shot, or computes the bound from the effect."""

    run: Worker
    timeout_seconds: float | Callable[[Any], float] = 60.0
    lane: Callable[[Any], str] | None = None
    """Names what a one-shot waits with when too many are at work: one of another lane, or kind, does not wait for it.
    """
    at_once: int | Pace | None = None
    """How many of its lane are at work at a time; None: as many as in any lane. All jobs of a lane have the same."""
    rank: Callable[[Any], tuple[Any, ...]] | None = None
    """Its place among those of its lane that wait: the smallest is next, of the same the one that came first."""
    measure: Callable[[Any, Signal], str] | None = None
    """For a lane with a Pace: under which name the time that an effect took counts; empty for an answer that says
    nothing of how long the work takes, such as a refusal.
    """


Ended = Callable[[BaseException], None]
"""Called, from any thread, by what runs a tended effect when it has failed."""


@dataclass(frozen=True, slots=True)
class Tended:
    """How a standing effect is run that needs no thread of its own, for something else runs many of its kind.

    `begin(effect, context, ended)` answers with what ends it. Both are called on the host's thread and must not wait:
    `begin` may raise, then the effect has failed; what ends it is called once, when it is cancelled.
    """

    begin: Callable[[Any, EffectContext, Ended], Callable[[], None]]


EventRoute = Callable[[Any], Sequence[str]]
"""Pure: the keys of the entities that an event (or command) concerns."""

Gather = Callable[[Sequence[tuple[Position, Any]]], Message]
"""Pure: one message of several events with their positions, oldest first."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[S]):
    """One actor kind, complete. Everything but `effects` and `standing` is pure and enough to fold history."""

    name: str
    shards: int
    state: type[S]
    format: int
    """The snapshot format's number; a snapshot of another one is ignored."""
    decider: Decider[S]
    commands: Mapping[type[Command], EventRoute] = field(default_factory=dict)
    subscribes: Mapping[type[Event], EventRoute] = field(default_factory=dict)
    gathers: Mapping[type[Event], Gather] = field(default_factory=dict)
    """Subscribed events that may come in floods: neighbours that wait together, about the same entities, are decided as
    one message, which also tells their positions.
    """
    creates: frozenset[type[Message]] = frozenset()
    """Messages that may create an entity; any other to an unknown entity is passed over."""
    at_start: tuple[str, ...] = ()
    """Keys of entities that exist from the beginning, with the state `initial` (kinds whose entity is the node)."""
    watches_clock: bool = False
    """Whether this kind's host tells, as events, when wall and monotonic clock part, and of what is in the log but is
    no entry (one kind a node does).
    """
    commits_when_full: bool = False
    """Whether this kind's steps are committed even on a server that has reached its maxmemory: they lead to room."""
    precedence: int = 5
    """Start order, lowest first: pleg and pods before the rest, for a container may have died meanwhile."""
    ahead: Callable[[], None] | None = None
    """Called when a shard was taken, before it is recovered: may begin to read of the world what its effects will want
    to know first. Must not wait, and must not change anything.
    """
    effects: Mapping[type[Effect], Job] = field(default_factory=dict)
    standing: Mapping[type[Effect], Job | Tended] = field(default_factory=dict)
