"""Finds free shards and acquires them for one process (docs/design.md, Ownership).

Input: shards that this process could host. Output: claims, for recovery; and `quarantined`, the shards that this
process has quarantined because of an error. Next: `supervisor`.

    free: released by its owner | its owner's lease is gone | its owner is proven dead by its lock

After a restart, the server lacks the renewals of the last second before it stopped, and leases have expired while it
was down; but their owners may be alive and acting. So a missing lease proves nothing until the server has been up for a
lease's time-to-live (docs/adr/0013).
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
    """A shard acquired by this process."""

    head: Head
    """The shard's hash, with this process's token."""
    former: kernel.ShardTakenOver | None
    """The event of the takeover, or None if no other process owned the shard or its owner had released it."""


class Claims:
    """Acquires shards for one process."""

    def __init__(self, store: Store, process: str, locks: Path | None, *, lease_milliseconds: int) -> None:
        self._store = store
        self._process = process
        self._locks = locks
        self._lease = lease_milliseconds
        self.quarantined: Mapping[Shard, str] = {}
        """Quarantined shards, each with its error. The mapping is replaced, never changed in place, because other
        threads read it.
        """

    def heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        """Return the heads of the shards. A shard with an unreadable head is quarantined and omitted."""
        try:
            return self._store.heads(shards)
        except StoreBroken:
            heads: dict[Shard, Head] = {}
            for shard in shards:
                try:
                    heads.update(self._store.heads([shard]))
                except StoreBroken as error:
                    self.quarantine(shard, str(error))
            return heads

    def take(self, shards: Sequence[Shard]) -> Mapping[Shard, Claim]:
        """Acquire those of the given shards that are free, and return their claims. The quarantine of a shard that a
        live process owns is lifted.
        """
        alive = self._store.alive()
        claims: dict[Shard, Claim] = {}
        for shard, head in self.heads(shards).items():
            proof = self._proof_of_free(head, alive)
            if not proof:
                self.lift_quarantine(shard)  # a live process owns it
            elif (claim := self._claim(shard, head, proof)) is not None:
                claims[shard] = claim
        return claims

    def quarantine(self, shard: Shard, error: str) -> None:
        """Quarantine a shard because of an error."""
        if self.quarantined.get(shard) != error:  # log each error once
            self.quarantined = {**self.quarantined, shard: error}
            log.error("shard quarantined", shard=str(shard), error=error)

    def lift_quarantine(self, shard: Shard) -> None:
        """End the quarantine of a shard, because it has a host, here or in another process."""
        if shard in self.quarantined:
            self.quarantined = {other: error for other, error in self.quarantined.items() if other != shard}

    def sweep(self) -> None:
        """Remove the lock files of dead processes that no longer have a lease."""
        sweep(self._locks, self._store.alive())

    def _proof_of_free(self, head: Head, alive: Mapping[str, str]) -> Proof | None:
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
            self.quarantine(shard, str(error))
            return None
        if isinstance(answer, Acquired):
            return Claim(answer.head, self._taken_over(head, proof))
        if isinstance(answer, NotFree) and answer.reason == "newer_schema":
            self.quarantine(shard, "written by a newer version of chronolet")
        return None

    def _taken_over(self, former: Head, proof: Proof) -> kernel.ShardTakenOver | None:
        owner = owner_of(former.token)
        if not owner or owner == self._process:
            return None
        return kernel.ShardTakenOver(former_owner=owner, owner=self._process, proof=proof)
