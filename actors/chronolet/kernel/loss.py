"""Whether the server has lost a part of what it had acknowledged to this process.

Comes in: how far this process knows the log and its shards to be. Goes out: yes or no. Next: `supervisor`, which then
loads everything again from what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chronolet.kernel.ledger import Ledger
from chronolet.kernel.store import Head, Store, epoch_of
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import Shard

ABOVE_ALL_N = 10**15


class Known(NamedTuple):
    """How far a shard had come at least, as its owner here knows."""

    version: int
    epoch: int


def known(ledgers: Iterable[Ledger[object]]) -> dict[Shard, Known]:
    """Of the shards hosted here. Ask before the server is asked: what is committed after this is no loss."""
    return {ledger.shard: Known(ledger.version, epoch_of(ledger.token)) for ledger in ledgers}


def is_behind(head: Head, shard: Known) -> bool:
    """Whether the server has forgotten a step, or an owner, of a shard."""
    return head.version < shard.version or 0 < epoch_of(head.token) < shard.epoch


def lacks(store: Store, read_to: Position) -> bool:
    """Whether the log neither has the entry that was read last, nor has trimmed it since."""
    if read_to == START:
        return False
    # Somebody else's entry may have the number 0, which none of ours has.
    milliseconds, n = read_to
    before = Position(milliseconds, n - 1) if n else Position(milliseconds - 1, ABOVE_ALL_N)
    return not store.read_log(before, 1, read_to) and read_to > store.archived()[1]
