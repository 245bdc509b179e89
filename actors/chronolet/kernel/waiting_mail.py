"""Commands that waited for a process: the shards that they were sent to are hosted before the others.

Comes in: claimed shards, then the seats of their hosts. Goes out: which shards go first; when they have decided. What
they say may be about what others are to do: the others then find it in the log before their own effects begin
(docs/adr/0019). Next: `supervisor`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping

from chronolet.kernel.claims import Claim
from chronolet.kernel.seat import Seat
from chronolet.kernel.store import Store, StoreBroken
from chronolet_schemas.keys import Shard

MAIL_SECONDS = 10.0
"""So long the shards without commands wait for those with commands: a command that cannot be decided must not keep the
node down.
"""


def with_mail(store: Store, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Claim]:
    """Those with commands that were sent while nobody hosted them."""
    found: dict[Shard, Claim] = {}
    for shard, claim in claims.items():
        with contextlib.suppress(StoreBroken):  # the reader says what is wrong with it
            if store.read_mail(shard, claim.head.mail_cursor, 1):
                found[shard] = claim
    return found


def let_read(seats: Iterable[Seat]) -> None:
    """Until these have decided what waited for them, or have failed; no longer than `MAIL_SECONDS`."""
    deadline = time.monotonic() + MAIL_SECONDS
    for seat in seats:
        seat.caught_up.wait(max(0.0, deadline - time.monotonic()))
