"""Selects the shards with waiting commands, which are hosted before the others, and waits until those commands are
decided.

Input: claimed shards, then the handles of their hosts; the shards that other processes host. Output: the shards to host
first; the waiting functions return when the commands are decided or the time is up. A command may change what other
shards have to do. Because of the wait, they find its events in the log before their own effects start (docs/adr/0019).
Next: `supervisor`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence

import structlog

from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.ownership.claims import Claim
from chronolet.kernel.storage.store import Store, StoreBroken
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Shard

log = structlog.get_logger("chronolet.kernel")

_POLL_SECONDS = 0.05
_MOST = 1000
"""Maximum number of commands per shard to wait for."""


def with_waiting_commands(store: Store, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Claim]:
    """Return the claimed shards whose mailboxes contain waiting commands."""
    found: dict[Shard, Claim] = {}
    for shard, claim in claims.items():
        with contextlib.suppress(StoreBroken):  # the reader reports the error
            if store.read_mail(shard, claim.head.mail_cursor, 1):
                found[shard] = claim
    return found


def wait_until_decided(handles: Iterable[HostHandle], seconds: float) -> None:
    """Wait until these hosts have decided their recovered backlogs, which contain the waiting commands, or have
    stopped, but for at most `seconds`.
    """
    deadline = time.monotonic() + seconds
    for handle in handles:
        handle.caught_up.wait(max(0.0, deadline - time.monotonic()))


def wait_for_other_processes(store: Store, shards: Sequence[Shard], seconds: float) -> None:
    """Wait until other processes have decided and committed the commands that are waiting for these shards now, but for
    at most `seconds`. If no commands are waiting, this costs one round trip plus one per shard. Do not pass shards of
    the caller's own kinds: if the owner of such a shard has died, its commands wait until the caller takes the shard
    over.
    """
    deadline = time.monotonic() + seconds
    behind = _unread(store, shards)
    while behind and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        behind = {shard: last for shard, last in behind.items() if _cursor(store, shard) < last}
    if behind:
        names = sorted(map(str, behind))
        log.warning("commands wait for shards that no process hosts, continuing without them", shards=names)


def _unread(store: Store, shards: Sequence[Shard]) -> dict[Shard, Position]:
    """Return the mailbox position of the last waiting command of each shard; shards without one are omitted. If a hash
    or mailbox is unreadable, the result is incomplete.
    """
    found: dict[Shard, Position] = {}
    with contextlib.suppress(StoreBroken):  # the process that hosts the shard reports the error
        for shard, head in store.heads(shards).items() if shards else ():
            if mails := store.read_mail(shard, head.mail_cursor, _MOST):
                found[shard] = mails[-1].id
    return found


def _cursor(store: Store, shard: Shard) -> Position:
    return store.heads([shard])[shard].mail_cursor
