"""Defines a decider (an initial state and four pure functions) and the two messages that only the kernel sends.

Pure: deciders import this module and no other module of the kernel. Input: nothing. Output: the types that each actor's
`decider.py` and `wanted.py` use. Next: `kind`, which adds routes and workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chronolet_schemas.envelope import Event, Message, Signal

S = TypeVar("S")


class Effect(Message, frozen=True, kw_only=True):
    """Work that should be running now, derived from the state by `outstanding`.

    At most one effect runs per `subject` of an entity. `intent` identifies the request (`start/app/3`): a running
    effect continues as long as its subject and intent are outstanding; a new intent for the subject cancels it first.
    """

    subject: str
    intent: str


class Due(Signal, frozen=True, kw_only=True):
    """Signals that the time `at` (milliseconds), returned by `due`, has come. The decider must return at least one
    event.
    """

    at: int


class EffectFailed(Signal, frozen=True, kw_only=True):
    """Signals that a one-shot effect raised an exception or exceeded its time-out (`timed_out`). Its intent is still
    open: the decider decides what happens next.
    """

    effect: str
    """The effect's class name."""
    subject: str
    intent: str
    error: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Decider(Generic[S]):
    """The pure core of an actor: no clock, no I/O, no generated ids, no randomness, no threads.

    `initial`: the state of an entity without events.
    `decide(state, message, now)`: returns events. `message` is a Command, another actor's Event or a Signal; `now` is
    in milliseconds.
    `evolve(state, event)`: cannot fail and validates nothing; returns None when the entity is gone.
    `due(state)`: the time at which the kernel sends `Due`, in milliseconds, or None.
    `outstanding(state)`: the effects that should be running, at most one per subject.
    """

    initial: S
    decide: Callable[[S, Any, int], Sequence[Event]]
    evolve: Callable[[S, Event], S | None]
    due: Callable[[S], int | None]
    outstanding: Callable[[S], Sequence[Effect]]
