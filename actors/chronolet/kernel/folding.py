"""Folds an event into the state of its entity.

Input: a state, an event. Output: the next state. Pure. Next: `ledger` for live steps and replay, `history` for readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from chronolet_schemas.envelope import Event

S = TypeVar("S")


class Evolution(Protocol[S]):
    """The part of a decider that is needed to fold history."""

    @property
    def initial(self) -> S:
        """See `decider.Decider`."""

    @property
    def evolve(self) -> Callable[[S, Event], S | None]:
        """See `decider.Decider`."""


def folded(decider: Evolution[S], known: S | None, event: Event) -> S | None:
    """Return the entity's state after one more event, or None if the entity then does not exist. `known`: its state
    before the event; None if it did not exist. Live steps and replay both use this function.

    If an event leaves a nonexistent entity in the initial state, the entity is not created: a refusal leaves nothing
    behind.
    """
    evolved = decider.evolve(decider.initial if known is None else known, event)
    return None if known is None and evolved == decider.initial else evolved
