"""Computes which of the node's shards this process should take, and which it should hand over to other processes.

Input: a survey of the members and owners, at regular intervals. Output: a `Plan`. Next: `supervisor`, which carries it
out.

Every process computes the same assignment (`balance`). A process only hands over shards that are assigned to another
process, and only takes free shards that are assigned to itself, so it does no harm if the views of two processes differ
for a moment. A free shard that its assigned process has not taken within a time-to-live is taken by any process that
can host it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from chronolet.kernel.ownership.balance import Candidate, assign
from chronolet.kernel.ownership.lease import seconds_since_boot
from chronolet.kernel.ownership.life_lock import proven_dead
from chronolet.kernel.ownership.membership import Membership
from chronolet.kernel.ownership.watch import CounterWatch
from chronolet.kernel.storage.layout import Layout
from chronolet.kernel.storage.members import Survey
from chronolet.kernel.storage.store import Store, owner_of
from chronolet_schemas.keys import Shard

REFUSED_SECONDS = 600.0
"""How long a process leaves a shard that it has quarantined to other processes, which may be able to host it."""


class Plan(NamedTuple):
    """What one process should do about the shards of its node."""

    run: str
    """The run of the log on the server."""
    take: frozenset[Shard] | None
    """The shards to take once they are free, including those that this process owns already; None: all shards,
    because no other process takes part.
    """
    give: Mapping[Shard, str]
    """The shards to hand over, each with the process that will take it."""
    elsewhere: frozenset[Shard]
    """The shards that other live processes own."""
    awaited: bool
    """Whether another live process is about to release a shard for this one."""
    layout: Layout
    """The log's layout."""


class Sharing:
    """Computes the plans of one process. `locks`: the folder of the life locks."""

    def __init__(
        self,
        store: Store,
        membership: Membership,
        locks: Path | None,
        *,
        watch: CounterWatch,
        lease_milliseconds: int,
        now: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self._store = store
        self._membership = membership
        self._locks = locks
        self._seconds = lease_milliseconds / 1000
        self._now = now
        self._watch = watch
        self._free_since: dict[Shard, float] = {}
        self._refused_until: dict[Shard, float] = {}
        self.instances: Mapping[str, str] = {}
        """The instance of each listed process, dead or alive, at the last look."""
        self.alone = True
        """Whether no other process took part at the last look."""

    @property
    def others(self) -> Mapping[str, str]:
        """The instance of each listed process, apart from this one."""
        return {
            process: instance for process, instance in self.instances.items() if process != self._membership.process
        }

    def look(
        self, shards: Sequence[Shard], *, kinds: Collection[str], quarantined: Collection[Shard], leaving: bool
    ) -> Plan:
        """Read the members and owners, update this process's entry, and return its plan. Reading costs one round trip
        to the store; two if this process was alone until now.

        `shards`: all shards of the node. `kinds`: the kinds that this process can host now. `quarantined`: the shards
        that it has quarantined. `leaving`: whether it is shutting down.
        """
        survey = self._survey(() if self.alone else shards)
        refused = [str(shard) for shard in self._refused(quarantined)]
        self._membership.update(survey, kinds=kinds, refused=refused, leaving=leaving)
        candidates = self._candidates(survey)
        self.alone = len(candidates) == 1
        if self.alone:
            self._free_since.clear()
            return Plan(survey.run, None, {}, frozenset(), awaited=False, layout=survey.layout)
        if not survey.tokens:
            survey = self._survey(shards)
        return self._plan(survey, candidates)

    def has_free(self) -> bool:
        """Whether a shard was free at the last look."""
        return bool(self._free_since)

    def next_proof(self) -> float | None:
        """Return the seconds until the death of another process may be proven; None if none is expected."""
        return None if self.alone else self._watch.next_proof()

    def _plan(self, survey: Survey, candidates: Mapping[str, Candidate]) -> Plan:
        me = self._membership.process
        owners = {shard: owner_of(token) for shard, token in survey.tokens.items()}
        assigned = assign(candidates, owners, owners)
        # Includes all shards that this process owns, because it may have no host for them: the host has failed, or the
        # process was just restarted. Only a host can hand over a shard.
        mine = {shard for shard, process in assigned.items() if me in (process, owners[shard])}
        give = {shard: to for shard, to in assigned.items() if to != me and owners[shard] == me}
        left = self._left_over({shard for shard in assigned if owners[shard] not in candidates}, candidates[me])
        elsewhere = frozenset(shard for shard, owner in owners.items() if owner != me and owner in candidates)
        awaited = not elsewhere.isdisjoint(mine)
        return Plan(survey.run, frozenset(mine | left), give, elsewhere, awaited=awaited, layout=survey.layout)

    def _refused(self, quarantined: Collection[Shard]) -> Collection[Shard]:
        """Return the shards that this process leaves to others: quarantined at most `REFUSED_SECONDS` ago."""
        now = self._now()
        self._refused_until |= dict.fromkeys(quarantined, now + REFUSED_SECONDS)
        self._refused_until = {shard: until for shard, until in self._refused_until.items() if until > now}
        return self._refused_until.keys()

    def _left_over(self, free: Collection[Shard], own: Candidate) -> set[Shard]:
        """Return the shards that have been free for a time-to-live although they are assigned to a live process; none
        if this process, `own`, drains or leaves.
        """
        now = self._now()
        self._free_since = {shard: self._free_since.get(shard, now) for shard in free}
        able = not (own.drains or own.leaves)
        return {shard for shard, since in self._free_since.items() if able and now - since >= self._seconds}

    def _survey(self, shards: Sequence[Shard]) -> Survey:
        """Take a survey without the members that are dead or have left."""
        surveys: list[Survey] = []

        def counters() -> Mapping[str, str]:
            surveys.append(self._store.survey(shards))
            return surveys[0].counters

        def watched() -> Iterator[str]:  # evaluated after the counters were read
            yield from surveys[0].counters

        me = self._membership.process
        dead = self._watch.read(counters, watched())
        found = surveys[0]
        self.instances = {process: member.instance for process, member in found.members.items()}
        living = {
            process: member
            for process, member in found.members.items()
            if process in found.counters
            and process not in dead
            and process != me
            and not proven_dead(self._locks, process, member.instance)
        }
        if me in found.members:
            living[me] = found.members[me]
        return Survey(found.run, found.counters, living, found.drained, found.tokens, found.layout)

    def _candidates(self, survey: Survey) -> dict[str, Candidate]:
        members = {**survey.members, self._membership.process: self._membership.entry}
        return {
            process: Candidate(
                kinds=frozenset(member.kinds),
                refused=member.refused_shards(),
                drains=process in survey.drained,
                leaves=member.leaving,
            )
            for process, member in members.items()
        }
