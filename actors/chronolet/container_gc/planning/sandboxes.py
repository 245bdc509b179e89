"""Decide which dead sandboxes to remove. Pure. Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go (evictSandboxes).

Input: the sandboxes of this node, the ids of those that contain containers, the pods, the current time. Output: one
verdict per sandbox; those to remove come first, the oldest of each pod first. Next: `plan`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container as Holds
from collections.abc import Iterable, Sequence

from chronolet.container_gc.planning.verdicts import BEING_MADE_MS, Pods, Verdict, unknown
from chronolet.container_gc.signals import RuntimeObject
from chronolet_schemas.container_gc import Rule


def judged(sandboxes: Iterable[RuntimeObject], occupied: Holds[str], pods: Pods, now: int) -> Sequence[Verdict]:
    """Return one verdict per sandbox."""
    by_pod: defaultdict[str, list[RuntimeObject]] = defaultdict(list)
    for one in sandboxes:
        by_pod[one.uid].append(one)
    found = [verdict for uid, each in by_pod.items() for verdict in _of_pod(uid, each, occupied, pods, now)]
    return sorted(found, key=lambda verdict: not verdict.remove)


def _of_pod(uid: str, sandboxes: list[RuntimeObject], occupied: Holds[str], pods: Pods, now: int) -> Iterable[Verdict]:
    """Yield a verdict on each of a pod's sandboxes, oldest first.

    The newest one stays, unless all objects of the pod are to be removed (`given_up`).
    """
    given_up = pods.given_up(uid) if pods.sources_ready else None
    sandboxes.sort(key=lambda one: (one.created_at, one.attempt))
    for one in sandboxes:
        goes: Rule = given_up or "older_sandbox"
        stays: Rule | None = "newest_sandbox" if given_up is None and one is sandboxes[-1] else None
        stays = stays or _exempt(one, occupied, given_up, now)
        yield Verdict(
            what="sandbox",
            id=one.id,
            name=one.name,
            pod=one.pod,
            uid=one.uid,
            remove=stays is None,
            rule=stays or goes,
            stop=True,
        )


def _exempt(one: RuntimeObject, occupied: Holds[str], given_up: Rule | None, now: int) -> Rule | None:
    if one.state == "running":
        return "ready"
    if one.id in occupied:
        return "has_containers"
    if one.state == "created" and now - one.created_at < BEING_MADE_MS:
        return "being_made"
    return unknown(one, now) if given_up == "deleted_pod" else None
