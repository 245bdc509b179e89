"""Decide which dead containers to remove. Pure. Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go (evictContainers).

Input: the containers of this node, the pods, the policy, the current time. Output: one verdict per container; those to
remove come first, in the order of removal. Next: `plan`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from chronolet.container_gc.planning.verdicts import BEING_MADE_MS, Pods, Verdict, unknown
from chronolet.container_gc.signals import RuntimeObject
from chronolet_schemas.container_gc import Policy, Rule

Unit = list[RuntimeObject]
"""The removable instances of one container of one pod, newest first."""


def judged(containers: Iterable[RuntimeObject], pods: Pods, policy: Policy, now: int) -> Sequence[Verdict]:
    """Return one verdict per container."""
    removed: list[Verdict] = []
    kept: list[Verdict] = []
    units: defaultdict[tuple[str, str], Unit] = defaultdict(list)
    for one in containers:
        rule = _exempt(one, pods, policy, now)
        if rule is not None:
            kept.append(_verdict(one, rule))
        elif not one.pod:
            removed.append(_verdict(one, "unidentified", remove=True))
        else:
            units[one.uid, one.container].append(one)
    for unit in units.values():
        # Docker lists creation times in whole seconds; the attempt orders two containers created in the same second.
        unit.sort(key=lambda one: (one.created_at, one.attempt), reverse=True)
    removed += _of_pods_given_up(units, pods)
    removed += _above_limits(units, policy)
    kept += [_verdict(one, "within_limits") for unit in units.values() for one in unit]
    return (*removed, *kept)


def _exempt(one: RuntimeObject, pods: Pods, policy: Policy, now: int) -> Rule | None:
    """Return the rule that exempts a container from collection; None if it is a candidate."""
    if one.state == "running":
        return "running"
    if one.state == "created" and now - one.created_at < BEING_MADE_MS:
        return "being_made"
    if now - one.created_at < policy.min_age_milliseconds:
        return "young"
    return unknown(one, now) if one.pod and one.uid not in pods.known else None


def _of_pods_given_up(units: dict[tuple[str, str], Unit], pods: Pods) -> Iterator[Verdict]:
    """Remove all containers of deleted pods, and on a full disk those of finished pods, once all pod sources have been
    read.
    """
    if not pods.sources_ready:
        return
    for key in list(units):
        rule = pods.given_up(key[0])
        if rule is not None:
            yield from (_verdict(one, rule, remove=True) for one in reversed(units.pop(key)))


def _above_limits(units: dict[tuple[str, str], Unit], policy: Policy) -> Iterator[Verdict]:
    """Enforce the limits: first the limit per container; then, above the total limit, an equal share per container; if
    that is not enough, remove the oldest of the remaining ones.
    """
    if policy.max_per_container >= 0:
        yield from _shortened(units, policy.max_per_container, "per_container_limit")
    total = sum(map(len, units.values()))
    if not 0 <= policy.max_containers < total:
        return
    yield from _shortened(units, max(policy.max_containers // len(units), 1), "share_of_total")
    left = sorted((one for unit in units.values() for one in unit), key=lambda one: one.created_at)
    for one in left[: max(len(left) - policy.max_containers, 0)]:
        units[one.uid, one.container].remove(one)
        yield _verdict(one, "total_limit", remove=True)


def _shortened(units: dict[tuple[str, str], Unit], keep: int, rule: Rule) -> Iterator[Verdict]:
    for key, unit in list(units.items()):
        yield from (_verdict(one, rule, remove=True) for one in reversed(unit[keep:]))
        del unit[keep:]
        if not unit:
            del units[key]


def _verdict(one: RuntimeObject, rule: Rule, *, remove: bool = False) -> Verdict:
    return Verdict(
        what="container",
        id=one.id,
        name=one.name,
        pod=one.pod,
        uid=one.uid,
        remove=remove,
        rule=rule,
        stop=one.state == "unknown",
        container=one.container,
        sandbox_id=one.sandbox_id,
    )
