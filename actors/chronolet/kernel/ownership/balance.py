"""Assigns the shards of a node to its processes. Pure: every process computes the same assignment from the same facts.

Input: the processes that can host something, the owners of the shards. Output: the process that should own each shard.
Next: `sharing`, through which a process releases surplus shards and takes those assigned to it.

For each kind, the shards are spread evenly over the processes that can host it: each gets the same number, and some get
one more. Which ones get one more is chosen so that all processes have as equal totals as possible. An owner keeps its
shards wherever that is compatible with these two rules, so an assignment that was carried out is not changed again.

A draining process gets a shard only if no other process can host the kind; a leaving process, only if not even a
draining one can. A process that failed to host a shard before (for example because its history is missing there) gets
that shard only if every other process failed as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from chronolet_schemas.keys import Shard


class Candidate(Struct, frozen=True):
    """A live process, as far as it matters for the assignment: the kinds that it can host, the shards of these kinds
    that it has quarantined, whether it drains, and whether it is about to end.
    """

    kinds: frozenset[str]
    refused: frozenset[Shard] = frozenset()
    drains: bool = False
    leaves: bool = False


def assign(
    candidates: Mapping[str, Candidate], shards: Iterable[Shard], owners: Mapping[Shard, str]
) -> dict[Shard, str]:
    """Return the process for each shard that any candidate can host. `owners`: the current owner of each owned shard;
    an owner that is not a candidate is ignored.
    """
    by_kind: dict[str, list[Shard]] = {}
    for shard in sorted(shards, key=lambda one: (one.kind, one.index or 0)):
        by_kind.setdefault(shard.kind, []).append(shard)
    able = {kind: found for kind in by_kind if (found := hosts_of(kind, candidates))}
    held = {kind: _held(by_kind[kind], hosts, owners) for kind, hosts in able.items()}
    quotas = _quotas(able, held, {kind: len(by_kind[kind]) for kind in able})
    assigned: dict[Shard, str] = {}
    for kind in able:
        assigned |= _placed(by_kind[kind], quotas[kind], owners, candidates)
    return assigned


def hosts_of(kind: str, candidates: Mapping[str, Candidate]) -> list[str]:
    """Return the processes that should share the shards of a kind, sorted by name: all that can host it and neither
    drain nor leave, or else those that drain, or else those that leave.
    """
    able = sorted(name for name, one in candidates.items() if kind in one.kinds)
    staying = [name for name in able if not candidates[name].leaves]
    return [name for name in staying if not candidates[name].drains] or staying or able


def _held(shards: Sequence[Shard], hosts: Sequence[str], owners: Mapping[Shard, str]) -> dict[str, int]:
    held = dict.fromkeys(hosts, 0)
    for shard in shards:
        if (owner := owners.get(shard, "")) in held:
            held[owner] += 1
    return held


def _quotas(
    able: Mapping[str, Sequence[str]], held: Mapping[str, Mapping[str, int]], counts: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Return how many shards of each kind each of its hosts should have. The counts of a kind differ by one at most."""
    quotas: dict[str, dict[str, int]] = {}
    loads: dict[str, int] = {}
    for kind, hosts in able.items():
        least, more = divmod(counts[kind], len(hosts))
        # Hosts that already own more come first, so that they keep their shards; then those with the lowest totals.
        order = sorted(hosts, key=lambda one: (-min(held[kind][one], least + 1), loads.get(one, 0), one))
        quotas[kind] = {host: least + (host in order[:more]) for host in hosts}
        for host, quota in quotas[kind].items():
            loads[host] = loads.get(host, 0) + quota
    floors = {kind: counts[kind] // len(hosts) for kind, hosts in able.items()}
    while path := _relief(quotas, floors, loads):
        for kind, giver, taker in path:
            quotas[kind][giver] -= 1
            quotas[kind][taker] += 1
            loads[giver] -= 1
            loads[taker] += 1
    return quotas


_Transfer = tuple[str, str, str]
"""A kind, the process that gets one shard of it less, and the process that gets one more."""


def _relief(
    quotas: Mapping[str, Mapping[str, int]], floors: Mapping[str, int], loads: Mapping[str, int]
) -> list[_Transfer]:
    """Return transfers that together lower the total of one process by one, and raise by one that of another whose
    total is lower by at least two. Empty if there are none: no other choice then makes the totals more equal. Each kind
    remains evenly spread.
    """
    for start in sorted(loads, key=lambda one: (-loads[one], one)):
        came_by: dict[str, _Transfer | None] = {start: None}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            if loads[here] <= loads[start] - 2:
                return _path(came_by, here)
            for kind, quota in quotas.items():
                if quota.get(here, 0) <= floors[kind]:
                    continue
                for there in sorted(quota):
                    if there not in came_by and quota[there] == floors[kind]:
                        came_by[there] = (kind, here, there)
                        queue.append(there)
    return []


def _path(came_by: Mapping[str, _Transfer | None], end: str) -> list[_Transfer]:
    path: list[_Transfer] = []
    while (transfer := came_by[end]) is not None:
        path.append(transfer)
        end = transfer[1]
    return path


def _placed(
    shards: Sequence[Shard], quotas: Mapping[str, int], owners: Mapping[Shard, str], candidates: Mapping[str, Candidate]
) -> dict[Shard, str]:
    """Place the shards of one kind. An owner keeps its shards up to its quota, first those that others have refused."""
    refusals = {shard: {host for host in quotas if shard in candidates[host].refused} for shard in shards}
    rooms = dict(quotas)
    placed: dict[Shard, str] = {}
    for shard in sorted(shards, key=lambda one: (-len(refusals[one]), one.index or 0)):
        owner = owners.get(shard, "")
        if rooms.get(owner, 0) > 0 and owner not in refusals[shard]:
            placed[shard] = owner
            rooms[owner] -= 1
    for shard in shards:
        if shard not in placed:
            placed[shard] = _best(rooms, refusals[shard])
            rooms[placed[shard]] -= 1
    return placed


def _best(rooms: Mapping[str, int], refusing: Collection[str]) -> str:
    """Return the host with the most room among those that have not refused the shard, or among all if all have."""
    willing = [host for host in rooms if host not in refusing] or list(rooms)
    return min(willing, key=lambda host: (-rooms[host], host))
