"""Checks that no live process touches a node, for `chronolet node move`.

Input: the shards' owners, their life locks and renewal counters. Output: the shards' tokens, which are checked
again when the site is recorded; Failure if an owner is alive. The rules are the kernel's: a shard is free only if it
was released, or if its owner is proven dead by its lock, or by a counter that has not moved for a time-to-live
(docs/adr/0034). Next: `command`.
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
    """Return the tokens of all shards of kinds that touch the node. Raises Failure unless each of their owners is
    proven dead.
    """
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
    """Return `tokens`. Raises Failure if they have changed since they were read: a process has acquired a shard while
    the user was asked for confirmation.
    """
    if _tokens(node) != tokens:
        raise Failure(
            f"node {node.settings.node}: a process has acquired shards in the meantime, nothing was recorded: stop it,"
            " then run the command again"
        )
    return tokens


def _watch(node: Session, tokens: Mapping[Shard, str], waiting: set[str]) -> None:
    """Return once all owners in `waiting` are proven dead. Raises Failure as soon as one of them proves to be alive, or
    if any is still uncertain after `_LONGEST_SECONDS`.
    """
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
            # A removed counter has not moved: another process's takeover of a shard removed it. An owner of an older
            # release has no counter, and counts as alive as long as the key of its lease exists.
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
