"""Makes sure that no living process touches a node, for `chronolet node move`.

Input: the shards' owners, their life locks and renewal counters. Output: the shards' tokens, which the record checks
again; Failure if an owner lives. The rules are the kernel's: a lock, a release, or a counter that stands still for a
time-to-live proves a death, nothing else (docs/adr/0034). Next: `command`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from chronolet.cli.errors import Failure
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import Session
from chronolet.kernel.ownership.lease import TTL_MILLISECONDS
from chronolet.kernel.ownership.life_lock import proven_dead
from chronolet.kernel.ownership.watch import CounterWatch
from chronolet.kernel.storage.store import owner_of
from chronolet.node.settings.settings import ALL_ACTORS
from chronolet.node.site.judgement import touching
from chronolet_schemas.keys import Shard

_PAUSE_SECONDS = 0.2
_LONGEST_SECONDS = 30.0
"""Maximum time to watch counters on a machine so busy that they cannot be read often enough."""


def released(node: Session) -> Mapping[Shard, str]:
    """Return the tokens of all shards that touch the node, none of them of a living process. Raises Failure."""
    tokens = _tokens(node)
    owned = {owner for token in tokens.values() if (owner := owner_of(token))}
    locks, members = node.settings.root_dir / "locks", node.store.survey(()).members
    instances = {process: member.instance for process, member in members.items()}
    waiting = {owner for owner in owned if not proven_dead(locks, owner, instances.get(owner, ""))}
    if not waiting:
        return tokens
    with progress("watching whether the former owner is alive"):
        _watch(node, tokens, waiting)
    return tokens


def unchanged(node: Session, tokens: Mapping[Shard, str]) -> Mapping[Shard, str]:
    """Return the same tokens. Raises Failure if a process has acquired a shard since, while the user was asked."""
    if _tokens(node) != tokens:
        raise Failure(
            f"node {node.settings.node}: a process has acquired shards in the meantime, nothing was recorded: stop it,"
            " then run the command again"
        )
    return tokens


def _watch(node: Session, tokens: Mapping[Shard, str], waiting: set[str]) -> None:
    """Return once all these owners are proven dead. Raises Failure as soon as one of them proves to live."""
    watch, first = CounterWatch(TTL_MILLISECONDS / 1000), node.store.renewals()
    deadline = time.monotonic() + _LONGEST_SECONDS
    while True:
        counters: list[Mapping[str, str]] = []

        def read(into: list[Mapping[str, str]] = counters) -> Mapping[str, str]:
            into.append(node.store.renewals())
            return into[0]

        dead = watch.read(read, waiting)
        alive = node.store.alive()
        for owner in sorted(waiting):
            before, now = first.get(owner, ""), counters[0].get(owner, "")
            # A counter that was removed has not moved: another process took over a shard. An owner of an older release
            # counts nothing, and lives as long as its key.
            if now not in ("", before) or (not before and not now and owner in alive):
                raise Failure(_alive(node, tokens, owner, alive.get(owner, "")))
        if waiting <= dead.keys():
            return
        if time.monotonic() > deadline:
            raise Failure(f"cannot tell within {_LONGEST_SECONDS:.0f} s whether {', '.join(sorted(waiting))} is alive")
        time.sleep(_PAUSE_SECONDS)


def _alive(node: Session, tokens: Mapping[Shard, str], owner: str, info: str) -> str:
    owned = sorted({shard.kind for shard, token in tokens.items() if owner_of(token) == owner})
    about = f"process {owner} ({info})" if info else f"process {owner}"
    return (
        f"node {node.settings.node}: {about} is alive and hosts {', '.join(owned)}: stop it first, on its own machine;"
        " nothing was recorded"
    )


def _tokens(node: Session) -> Mapping[Shard, str]:
    kinds = touching(set(ALL_ACTORS) - {"manifests"}, manifest_path="", archive=node.settings.archive)
    return {shard: head.token for shard, head in node.store.heads(node.shards(*sorted(kinds))).items()}
