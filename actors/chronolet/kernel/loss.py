"""Whether the server has lost a part of what it had acknowledged to this process.

Comes in: how far this process knows the log, its mailboxes and its shards to be. Goes out: yes or no. Next: `reader`,
which then brings nothing any more, and `supervisor`, which loads everything again from what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chronolet.kernel.ledger import Ledger
from chronolet.kernel.seat import Seat
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
    return not store.read_log(_before(read_to), 1, read_to) and read_to > store.archived()[1]


def lacks_mail(store: Store, seat: Seat) -> bool:
    """Whether the shard's mailbox lacks the command that was read last. A mailbox keeps each until the step that
    consumes it, and the one that was consumed last after that.
    """
    read_to = seat.mail_to
    if read_to <= seat.ledger.mail_cursor:
        return False
    found = store.read_mail(seat.shard, _before(read_to), 1)
    # The cursor once more: what was consumed meanwhile may be gone.
    return all(one.id != read_to for one in found) and read_to > seat.ledger.mail_cursor


def _before(position: Position) -> Position:
    # Somebody else's entry may have the number 0, which none of ours has.
    milliseconds, n = position
    return Position(milliseconds, n - 1) if n else Position(milliseconds - 1, ABOVE_ALL_N)
