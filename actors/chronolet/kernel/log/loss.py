"""Whether the server has lost a part of what it had acknowledged to this process.

Comes in: how far this process knows the log, its mailboxes and its shards to be. Goes out: yes or no. Next: `reader`,
which then stops delivering, and `supervisor`, which loads everything again from what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chronolet.kernel.hosting.host_handle import HostHandle
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.storage.store import Head, Store, epoch_of
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


def lacks_what_was_read(store: Store, read_to: Position, seats: Iterable[HostHandle]) -> bool:
    """Whether the server lacks the last entry of the log that was read, or the last command of one of these mailboxes.

    To be asked after an absence of the server, before anything that was read later is delivered: a step is refused if
    the last message that it consumes is lost, but not if a newer message follows the lost one.
    """
    return lacks(store, read_to) or any(_lacks_command(store, seat) for seat in seats)


def _lacks_command(store: Store, seat: HostHandle) -> bool:
    # A mailbox keeps each command until the step that consumes it, and the last consumed one after that.
    read_to = seat.mail_to
    if read_to <= seat.ledger.mail_cursor:
        return False
    found = store.read_mail(seat.shard, _before(read_to), 1)
    # The host may have consumed it in the meantime, so the cursor is read again.
    return all(one.id != read_to for one in found) and read_to > seat.ledger.mail_cursor


def _before(position: Position) -> Position:
    # Somebody else's entry may have the number 0, which none of ours has.
    milliseconds, n = position
    return Position(milliseconds, n - 1) if n else Position(milliseconds - 1, ABOVE_ALL_N)
