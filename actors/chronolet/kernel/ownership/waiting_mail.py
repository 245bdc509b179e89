"""Commands that waited for a process: the shards that they were sent to are hosted before the others.

Comes in: claimed shards, then the seats of their hosts; the shards that are hosted elsewhere. Goes out: which shards go
first; when they have decided. What they say may be about what others are to do: the others then find it in the log
before their own effects begin (docs/adr/0019). Next: `supervisor`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence

import structlog

from chronolet.kernel.hosting.host_handle import HostHandle
from chronolet.kernel.ownership.claims import Claim
from chronolet.kernel.storage.store import Store, StoreBroken
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Shard

log = structlog.get_logger("chronolet.kernel")

MAIL_SECONDS = 10.0
"""So long the shards without commands wait for those with commands: a command that cannot be decided must not keep the
node down.
"""
_LOOK_SECONDS = 0.05
_MOST = 1000
"""So many commands of a shard are waited for."""


def with_mail(store: Store, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Claim]:
    """Those with commands that were sent while nobody hosted them."""
    found: dict[Shard, Claim] = {}
    for shard, claim in claims.items():
        with contextlib.suppress(StoreBroken):  # the reader says what is wrong with it
            if store.read_mail(shard, claim.head.mail_cursor, 1):
                found[shard] = claim
    return found


def let_read(seats: Iterable[HostHandle]) -> None:
    """Until these have decided what waited for them, or have failed; no longer than `MAIL_SECONDS`."""
    deadline = time.monotonic() + MAIL_SECONDS
    for seat in seats:
        seat.caught_up.wait(max(0.0, deadline - time.monotonic()))


def let_others_read(store: Store, shards: Sequence[Shard]) -> None:
    """Until the processes that host these shards have decided what waits for them now, and committed it; no longer than
    `MAIL_SECONDS`. Where nothing waits it costs one round trip, and one for each shard. The caller's own kinds must not
    be among them: a shard whose owner has died waits for the caller to take it.
    """
    deadline = time.monotonic() + MAIL_SECONDS
    behind = _unread(store, shards)
    while behind and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        behind = {shard: last for shard, last in behind.items() if _cursor(store, shard) < last}
    if behind:
        names = sorted(map(str, behind))
        log.warning("commands wait for shards that no process reads, going on without", shards=names)


def _unread(store: Store, shards: Sequence[Shard]) -> dict[Shard, Position]:
    """The last command that waits, by shard; only shards for which one does, and whose hash can be read."""
    found: dict[Shard, Position] = {}
    with contextlib.suppress(StoreBroken):  # whoever hosts it says so
        for shard, head in store.heads(shards).items() if shards else ():
            if mails := store.read_mail(shard, head.mail_cursor, _MOST):
                found[shard] = mails[-1].id
    return found


def _cursor(store: Store, shard: Shard) -> Position:
    return store.heads([shard])[shard].mail_cursor
