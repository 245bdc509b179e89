"""What a decider is: five pure functions, and the two messages that only the kernel sends.

Pure itself: deciders import this module and nothing else of the kernel. Comes in: nothing. Goes out: the words that
each actor's `decider.py` and `wanted.py` are written in. Next: `kind`, which adds routes and workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chronolet_schemas.envelope import Event, Message, Signal

S = TypeVar("S")


class Effect(Message, frozen=True, kw_only=True):
    """Something that should be running now, assembled by `outstanding` from the state.

    One effect runs for one `subject` of an entity at a time. `intent` names this very wish (`start/app/3`): while the
    same subject and intent are outstanding the running effect is left alone; another intent cancels it first.
    """

    subject: str
    intent: str


class Due(Signal, frozen=True, kw_only=True):
    """The time that `due` named has come. A decider must answer with at least one event."""

    at: int


class EffectFailed(Signal, frozen=True, kw_only=True):
    """A one-shot effect raised, or did not end in time (`timed_out`). Its intent is still open: decide what now."""

    effect: str
    """The effect's class name."""
    subject: str
    intent: str
    error: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Decider(Generic[S]):
    """Five pure functions: no clock, no I/O, no ids, no randomness, no threads (DESIGN 3.1).

    `decide(state, message, now)`: now in milliseconds; message is a Command, another actor's Event or a Signal.
    `evolve(state, event)`: cannot fail, judges nothing; None means the entity is gone.
    `due(state)`: when to be woken by `Due`, in milliseconds, or None.
    `outstanding(state)`: the effects that should be running, one for each subject.
    """

    initial: S
    decide: Callable[[S, Any, int], Sequence[Event]]
    evolve: Callable[[S, Event], S | None]
    due: Callable[[S], int | None]
    outstanding: Callable[[S], Sequence[Effect]]


def folded(decider: Decider[S], known: S | None, event: Event) -> S | None:
    """The entity's state after one more event, None if there is no such entity: the one way, live and in replay.

    An event that leaves an unknown entity with the initial state makes none: a refusal leaves nothing behind.
    """
    evolved = decider.evolve(decider.initial if known is None else known, event)
    return None if known is None and evolved == decider.initial else evolved
