"""Folds the states of one kind's entities from log entries. Pure.

Input: entries of the kind. Output: states by key. Next: `history.state`, which begins with a snapshot or a checkpoint;
`upkeep`, which writes checkpoints.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from chronolet.kernel.folding import Evolution, folded
from chronolet_schemas import codec
from chronolet_schemas.envelope import Entry, Event


class FoldableKind(Protocol):
    """The part of a `Kind` that is needed to fold its states, and to store them."""

    @property
    def name(self) -> str:
        """See `Kind`, which also documents the other properties."""

    @property
    def state(self) -> type[Any]: ...

    @property
    def format(self) -> int: ...

    @property
    def decider(self) -> Evolution[Any]: ...

    @property
    def at_start(self) -> tuple[str, ...]: ...


class KindFold:
    """The states of one kind's entities. `keys`: fold only these."""

    def __init__(self, kind: FoldableKind, keys: Collection[str] | None = None) -> None:
        self.kind = kind
        self.keys = keys
        self.states: dict[str, Any] = dict.fromkeys(kind.at_start, kind.decider.initial)

    def add(self, key: str, entry: Entry) -> None:
        """Fold the next entry of the entity `key`. Raises Undecodable."""
        event = codec.decode(entry.type, entry.data, Event)
        state = folded(self.kind.decider, self.states.get(key), event)
        if state is None:
            self.states.pop(key, None)
        else:
            self.states[key] = state
