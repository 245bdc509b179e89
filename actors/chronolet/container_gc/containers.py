"""Which dead containers go. Pure. Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go (evictContainers).

Comes in: the containers of this node, the pods, the policy, now. Goes out: a verdict over each, those that go first and
in the order in which they go. Next: `plan`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from chronolet.container_gc.signals import Seen
from chronolet.container_gc.verdicts import BEING_MADE_MS, Pods, Verdict, unknown
from chronolet_schemas.container_gc import Policy, Rule

Unit = list[Seen]
"""The candidates of one container of one pod, the newest first."""


def judged(containers: Iterable[Seen], pods: Pods, policy: Policy, now: int) -> Sequence[Verdict]:
    """A verdict over each container."""
    going: list[Verdict] = []
    staying: list[Verdict] = []
    units: defaultdict[tuple[str, str], Unit] = defaultdict(list)
    for one in containers:
        rule = _exempt(one, pods, policy, now)
        if rule is not None:
            staying.append(_verdict(one, rule))
        elif not one.pod:
            going.append(_verdict(one, "unidentified", remove=True))
        else:
            units[one.uid, one.container].append(one)
    for unit in units.values():
        # Docker's listing tells whole seconds: of two made in the same one the later attempt is the newer.
        unit.sort(key=lambda one: (one.created_at, one.attempt), reverse=True)
    going += _of_pods_given_up(units, pods)
    going += _above_limits(units, policy)
    staying += [_verdict(one, "within_limits") for unit in units.values() for one in unit]
    return (*going, *staying)


def _exempt(one: Seen, pods: Pods, policy: Policy, now: int) -> Rule | None:
    """Why a container is no candidate at all, if so."""
    if one.state == "running":
        return "running"
    if one.state == "created" and now - one.created_at < BEING_MADE_MS:
        return "being_made"
    if now - one.created_at < policy.min_age_milliseconds:
        return "young"
    return unknown(one, now) if one.pod and one.uid not in pods.known else None


def _of_pods_given_up(units: dict[tuple[str, str], Unit], pods: Pods) -> Iterator[Verdict]:
    """All of deleted pods, once it is sure which those are."""
    if not pods.sources_ready:
        return
    for key in list(units):
        rule = pods.given_up(key[0])
        if rule is not None:
            yield from (_verdict(one, rule, remove=True) for one in reversed(units.pop(key)))


def _above_limits(units: dict[tuple[str, str], Unit], policy: Policy) -> Iterator[Verdict]:
    """What is above the limit of each unit; then, above the limit of all, what is above each unit's share of it, and
    the oldest of the rest.
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


def _verdict(one: Seen, rule: Rule, *, remove: bool = False) -> Verdict:
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
