"""Detects that the server has lost data that it had acknowledged to this process.

Input: the last positions and versions of the log, mailboxes and shards that this process has seen. Output: whether data
was lost. Next: `reader`, which then stops delivering, and `supervisor`, which reloads everything from the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.storage.store import Head, Store, StoreBroken, epoch_of
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import Shard

ABOVE_ALL_N = 10**15


class Progress(NamedTuple):
    """The progress of a shard as last known to its host in this process; the shard may have advanced further."""

    version: int
    epoch: int


def known(ledgers: Iterable[Ledger[object]]) -> dict[Shard, Progress]:
    """Return the progress of the shards hosted here. Call this before reading the heads, so that a commit in between
    does not look like a loss.
    """
    return {ledger.shard: Progress(ledger.version, epoch_of(ledger.token)) for ledger in ledgers}


def is_behind(head: Head, shard: Progress) -> bool:
    """Whether the server has lost a step of the shard, or the shard's last acquisition."""
    return head.version < shard.version or 0 < epoch_of(head.token) < shard.epoch


def lacks(store: Store, read_to: Position) -> bool:
    """Whether the entry at `read_to`, the last one read, is missing from the log although it was not trimmed."""
    if read_to == START:
        return False
    return not store.read_log(_before(read_to), 1, read_to) and read_to > store.archived()[1]


def lacks_what_was_read(store: Store, read_to: Position, handles: Iterable[HostHandle]) -> bool:
    """Whether the server lacks the last log entry that was read, or the last command that was read for one of these
    hosts.

    Check this after an outage of the server, before delivering further messages: the server refuses a step if the last
    message that it consumes is lost, but not if the step also consumes a newer message.
    """
    return lacks(store, read_to) or any(_lacks_command(store, handle) for handle in handles)


def _lacks_command(store: Store, handle: HostHandle) -> bool:
    # A mailbox retains each command until a step consumes it, and the last consumed one until the next is consumed.
    read_to = handle.mail_to
    if read_to <= handle.ledger.mail_cursor:
        return False
    try:
        found = store.read_mail(handle.shard, _before(read_to), 1)
    except StoreBroken:
        return False  # concerns this shard alone; its reader reports it
    # The host may have consumed the command in the meantime, so the cursor is read again.
    return all(one.id != read_to for one in found) and read_to > handle.ledger.mail_cursor


def _before(position: Position) -> Position:
    # A foreign entry may have the number 0, which our own entries never have.
    milliseconds, n = position
    return Position(milliseconds, n - 1) if n else Position(milliseconds - 1, ABOVE_ALL_N)
