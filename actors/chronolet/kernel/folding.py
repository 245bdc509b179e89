"""Folds an event into the state of its entity.

Input: a state, an event. Output: the next state. Pure. Next: `ledger` for live steps and replay, `history` for readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from chronolet_schemas.envelope import Event

S = TypeVar("S")


class Evolution(Protocol[S]):
    """The part of a decider that suffices to fold history."""

    @property
    def initial(self) -> S:
        """See `decider.Decider`."""

    @property
    def evolve(self) -> Callable[[S, Event], S | None]:
        """See `decider.Decider`."""


def folded(decider: Evolution[S], known: S | None, event: Event) -> S | None:
    """Return the entity's state after one more event, or None if the entity does not exist. Live steps and replay both
    use this function.

    An event that leaves an unknown entity in the initial state does not create it: a refusal leaves nothing behind.
    """
    evolved = decider.evolve(decider.initial if known is None else known, event)
    return None if known is None and evolved == decider.initial else evolved
