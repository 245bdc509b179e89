"""Finds free shards and acquires them for one process (docs/design.md, Ownership).

Input: shards that this process could host. Output: claims, for recovery; and `quarantined`, the shards that this
process has quarantined because of an error. Next: `supervisor`.

    free: released by its owner | its owner is proven dead by its lock | or by its renewal counter

A counter proves a death if it has not moved for a lease's time-to-live, as measured by this process's own clock
(`watch`). Nothing else does, not even the expiry of the lease's key (docs/adr/0034).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog

from chronolet.kernel.ownership.life_lock import proven_dead, sweep
from chronolet.kernel.ownership.watch import CounterWatch
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.store import (
    NOBODY,
    Acquired,
    Head,
    NotFree,
    Proof,
    Store,
    StoreBroken,
    epoch_of,
    owner_of,
)
from chronolet_schemas import kernel, registry
from chronolet_schemas.keys import Shard

log = structlog.get_logger("chronolet.kernel")


class Claim(NamedTuple):
    """A shard acquired by this process."""

    head: Head
    """The shard's hash, with this process's token."""
    former: kernel.ShardTakenOver | None
    """The event of the takeover, or None if no other process owned the shard or its owner had released it."""

    @property
    def unclean(self) -> bool:
        """Whether the former owner ended without a handover; after a change of the number of shards, whether the owner
        of any former shard did.
        """
        first = self.head.unclean_epoch and epoch_of(self.head.token) == self.head.unclean_epoch + 1
        return self.former is not None or bool(first)


class Claims:
    """Acquires shards for one process."""

    def __init__(
        self,
        store: Store,
        process: str,
        locks: Path | None,
        watch: CounterWatch,
        instances: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`watch`: may be shared with `sharing`, which reads the counters more often. `instances`: returns the instance
        of each listed process.
        """
        self._store = store
        self._process = process
        self._locks = locks
        self._watch = watch
        self._instances = instances
        self._taken: dict[Shard, str] = {}
        """The last token of each shard that this instance of the process has acquired."""
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
        heads = self.heads(shards)
        dead = self._watch.read(self._store.renewals, self._others(heads.values()))
        claims: dict[Shard, Claim] = {}
        for shard, head in heads.items():
            proof = self._proof_of_free(head, dead)
            if not proof:
                self.lift_quarantine(shard)  # a live process owns it
            elif (claim := self._claim(shard, head, proof, dead.get(owner_of(head.token), ""))) is not None:
                claims[shard] = claim
        return claims

    def take_all(self, shards: Sequence[Shard]) -> Mapping[Shard, Claim]:
        """Acquire all of these shards, or none: if one is not free, the others are given back.

        Each caller acquires them in the same order, so of several callers one gets all.
        """
        heads = self.heads(shards)
        dead = self._watch.read(self._store.renewals, self._others(heads.values()))
        proofs = {shard: proof for shard, head in heads.items() if (proof := self._proof_of_free(head, dead))}
        claims: dict[Shard, Claim] = {}
        if len(proofs) == len(shards):
            for shard in shards:
                head = heads[shard]
                claim = self._claim(shard, head, proofs[shard], dead.get(owner_of(head.token), ""))
                if claim is None:
                    break
                claims[shard] = claim
        if len(claims) == len(shards):
            return claims
        self.give_back(shards)
        return {}

    def give_back(self, shards: Sequence[Shard]) -> None:
        """Release those of the given shards that this process owns. None of them may have a host."""
        ours = [(s, head.token) for s, head in self.heads(shards).items() if owner_of(head.token) == self._process]
        if ours:
            self._store.retire(NOBODY, ours)

    def owners_of(self, shards: Sequence[Shard]) -> Mapping[Shard, str]:
        """Return the other processes that own some of these shards."""
        owners = {shard: owner_of(head.token) for shard, head in self.heads(shards).items()}
        return {shard: owner for shard, owner in owners.items() if owner not in ("", self._process)}

    def quarantine(self, shard: Shard, error: str) -> None:
        """Quarantine a shard because of an error."""
        if self.quarantined.get(shard) != error:  # log each error once
            self.quarantined = {**self.quarantined, shard: error}
            log.error("shard quarantined", shard=str(shard), error=error)

    def lift_quarantine(self, shard: Shard) -> None:
        """End the quarantine of a shard, because it has a host, here or in another process."""
        if shard in self.quarantined:
            self.quarantined = {other: error for other, error in self.quarantined.items() if other != shard}

    def lift_quarantines_except(self, router: Router) -> None:
        """End the quarantine of shards that the router's layout does not have."""
        for shard in self.quarantined:
            if shard not in router.shards_of(shard.kind):
                self.lift_quarantine(shard)

    def sweep(self) -> None:
        """Remove the lock files of dead processes that no longer have a lease."""
        sweep(self._locks, self._store.alive())

    def _others(self, heads: Iterable[Head]) -> set[str]:
        return {owner_of(head.token) for head in heads} - {"", self._process}

    def _proof_of_free(self, head: Head, dead: Collection[str]) -> Proof | None:
        owner = owner_of(head.token)
        if not owner or owner == self._process:
            return "released"
        if proven_dead(self._locks, owner, self._instances().get(owner, "")):
            return "lock"
        return "counter" if owner in dead else None

    def _claim(self, shard: Shard, head: Head, proof: Proof, counter: str) -> Claim | None:
        try:
            schema = max(registry.SCHEMA, registry.RESHARDED)
            answer = self._store.acquire(shard, head.token, self._process, schema, proof=proof, counter=counter)
        except StoreBroken as error:
            self.quarantine(shard, str(error))
            return None
        if isinstance(answer, Acquired):
            claim = Claim(answer.head, self._taken_over(shard, head, proof))
            self._taken[shard] = answer.head.token
            return claim
        if isinstance(answer, NotFree) and answer.reason == "newer_schema":
            self.quarantine(shard, "written by a newer version of chronolet")
        return None

    def _taken_over(self, shard: Shard, former: Head, proof: Proof) -> kernel.ShardTakenOver | None:
        owner = owner_of(former.token)
        if not owner or former.token == self._taken.get(shard):
            return None
        if owner == self._process:  # a dead process that had the same name: only then was the name free
            proof = "lock" if self._locks is not None else "counter"
        # "lease" is what the log calls the counter's proof since before there were counters.
        return kernel.ShardTakenOver(
            former_owner=owner, owner=self._process, proof="lock" if proof == "lock" else "lease"
        )
