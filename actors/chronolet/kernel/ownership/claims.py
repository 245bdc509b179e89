"""Which shards are free, and the taking of them by one process (DESIGN 3.5).

Comes in: shards that this process could host. Goes out: claims, for recovery; and `left`, the shards that nobody hosts
because this process found something wrong with them. Next: `supervisor`.

    free: released by its owner | its owner's lease is gone | its owner is proven dead by its lock

A server that was started a moment ago has lost the renewals of its last second, and leases ran out while it was away,
but their owners live and act. So for as long as a lease lasts a missing one proves nothing (docs/adr/0013).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import structlog

from chronolet.kernel.ownership.lease import proven_dead, sweep
from chronolet.kernel.storage.store import Acquired, Head, NotFree, Store, StoreBroken, owner_of
from chronolet_schemas import kernel, registry
from chronolet_schemas.keys import Shard

Proof = Literal["released", "lease", "lock"]

log = structlog.get_logger("chronolet.kernel")


class Claim(NamedTuple):
    """A shard that is this process's from now on."""

    head: Head
    """With this process's token."""
    former: kernel.ShardTakenOver | None
    """Whom it was taken from, if that was somebody else who had not released it."""


class Claims:
    """Takes shards in the name of one process."""

    def __init__(self, store: Store, process: str, locks: Path | None, *, lease_milliseconds: int) -> None:
        self._store = store
        self._process = process
        self._locks = locks
        self._lease = lease_milliseconds
        self.left: Mapping[Shard, str] = {}
        """Shards that are left alone, with what is wrong; never changed in place, for other threads look at it."""

    def heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        """The shards' hashes; without those that are none, which are no reason to leave the others alone."""
        try:
            return self._store.heads(shards)
        except StoreBroken:
            heads: dict[Shard, Head] = {}
            for shard in shards:
                try:
                    heads.update(self._store.heads([shard]))
                except StoreBroken as error:
                    self.leave(shard, str(error))
            return heads

    def take(self, shards: Sequence[Shard]) -> Mapping[Shard, Claim]:
        """Those of the shards that are free and could be taken."""
        alive = self._store.alive()
        claims: dict[Shard, Claim] = {}
        for shard, head in self.heads(shards).items():
            proof = self._free(head, alive)
            if not proof:
                self.no_longer_left(shard)  # somebody who lives has it
            elif (claim := self._claim(shard, head, proof)) is not None:
                claims[shard] = claim
        return claims

    def leave(self, shard: Shard, error: str) -> None:
        """Leave a shard alone, for what is wrong with it."""
        if self.left.get(shard) != error:  # once, however long it takes
            self.left = {**self.left, shard: error}
            log.error("shard left alone", shard=str(shard), error=error)

    def no_longer_left(self, shard: Shard) -> None:
        """A shard has its host, here or elsewhere."""
        if shard in self.left:
            self.left = {other: error for other, error in self.left.items() if other != shard}

    def sweep(self) -> None:
        """Remove the lock files of those who are known to be dead without them."""
        sweep(self._locks, self._store.alive())

    def _free(self, head: Head, alive: Mapping[str, str]) -> Proof | None:
        owner = owner_of(head.token)
        if not owner or owner == self._process:
            return "released"
        if proven_dead(self._locks, owner):
            return "lock"
        return "lease" if owner not in alive and self._store.up_milliseconds() >= self._lease else None

    def _claim(self, shard: Shard, head: Head, proof: Proof) -> Claim | None:
        try:
            answer = self._store.acquire(shard, head.token, self._process, registry.SCHEMA, proven_dead=proof == "lock")
        except StoreBroken as error:
            self.leave(shard, str(error))
            return None
        if isinstance(answer, Acquired):
            return Claim(answer.head, self._taken_over(head, proof))
        if isinstance(answer, NotFree) and answer.reason == "newer_schema":
            self.leave(shard, "a newer version of this program has written it")
        return None

    def _taken_over(self, former: Head, proof: Proof) -> kernel.ShardTakenOver | None:
        owner = owner_of(former.token)
        if not owner or owner == self._process:
            return None
        return kernel.ShardTakenOver(former_owner=owner, owner=self._process, proof=proof)
