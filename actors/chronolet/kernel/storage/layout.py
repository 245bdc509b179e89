"""The layout of a log: how many shards each kind has, and the store's calls that read and change it (docs/adr/0043).

Input: requests of an operator, and complete changes prepared by `kernel.layout`. Output: plain values, including
refusals. A change is one atomic call. Next: `store`, whose Protocol includes these calls; `kernel.layout`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from chronolet_schemas.envelope import Position, Record
from chronolet_schemas.keys import Shard

Decided = tuple[tuple[Position, ...], ...]
"""What former shards of a kind had decided: one table for each former layout, newest first, with one position for each
of its shards. A table of `n` positions belongs to a layout of `n` shards.
"""


class Layout(Struct, frozen=True):
    """The log's run, the shard count of each kind, and the requested changes."""

    run: str
    counts: Mapping[str, int]
    requested: Mapping[str, int] = {}
    """Kind -> requested shard count, until it is reached or refused."""
    refused: Mapping[str, str] = {}
    """Kind -> why its last request was refused; removed by the next request."""


class Move(NamedTuple):
    """One waiting command: the former shard in whose mailbox it waits, its id there, and its entity's new shard."""

    former: Shard
    id: Position
    shard: Shard


class Reshard(Struct, frozen=True, kw_only=True):
    """One change of a kind's shard count. The caller owns all former shards, so no other process changes them."""

    kind: str
    before: int
    after: int
    tokens: Mapping[Shard, str]
    """The caller's token of each former shard."""
    mail_ends: Mapping[Shard, Position]
    """The id of the last command in each former mailbox, or the shard's mail cursor if no command waits."""
    moves: Sequence[Move]
    """All waiting commands, in the order of each mailbox."""
    read_to: Position
    """The position up to which `states` are folded. The log must still contain it."""
    format: int
    states: Mapping[Shard, bytes]
    """The encoded states of each new shard, which become its snapshot."""
    log_cursor: Position
    """The lowest cursor of the former shards."""
    decided: Decided
    attempts: Mapping[str, int]
    """Attempt counts of the former shards, kept by every new one."""
    unclean: bool
    """Whether a former shard was taken over from a process that ended without a handover."""
    schema: int
    """Written into the hashes of all shards: a process with a lower schema number cannot acquire them."""
    records: tuple[Record, ...]
    """The events to write; the last one is `kernel.KindResharded`."""


class Resharded(Struct, frozen=True):
    """The count was changed. The new shards have no owner. `at`: the position of the last record."""

    at: Position


class Outdated(Struct, frozen=True):
    """Nothing was written, because the data differs from what the change was prepared for. `what`: what differs, that
    is, the kind's count, a mailbox, the log (its end was lost), or the owner of a former shard.
    """

    what: Literal["count", "mail", "log", "owner"]


class LayoutStore(Protocol):
    """The part of a store that concerns the layout."""

    def layout(self) -> Layout:
        """Return the current layout. Its run is empty if there is no log."""

    def request_shards(self, kind: str, count: int) -> bool:
        """Request another shard count for a kind. Returns False if the log does not have the kind."""

    def refuse_shards(self, kind: str, count: int, reason: str) -> None:
        """End a request that cannot be met, unless it was replaced by a request for another count."""

    def reshard(self, change: Reshard) -> Resharded | Outdated:
        """Change the shard count of a kind, if all former shards still have the tokens in `change` and nothing else has
        changed since it was prepared.

        After a lost reply, a repeat returns Outdated("count"): the layout then shows the new count.
        """

    def add_kind(self, kind: str, shards: int, record: Record) -> int:
        """Add a kind to the log and write `record` (`kernel.KindAdded`), if the log does not have the kind. Returns the
        kind's shard count, which may differ from `shards` if another process added it.
        """
