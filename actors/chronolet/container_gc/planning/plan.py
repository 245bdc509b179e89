"""Plan a run: one verdict per object of the node. Pure.

Input: a scan, the pods, the policy, the current time. Output: the stages in order. Next: `decider`, which carries the
plan out, and `gc plan`, which shows it. Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go (GarbageCollect): a failed
stage does not prevent the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from chronolet.container_gc.planning import containers, logs, sandboxes
from chronolet.container_gc.planning.verdicts import Pods, Verdict
from chronolet.container_gc.signals import Looked, Stage
from chronolet_schemas.container_gc import Policy, Victim


class Judged(NamedTuple):
    """One stage of a run: the verdicts, or why its objects could not be listed."""

    stage: Stage
    verdicts: Sequence[Verdict] = ()
    error: str = ""


def judged(scan: Looked, pods: Pods, policy: Policy, now: int) -> Sequence[Judged]:
    """Plan the stages of a normal run."""
    first = _stage("containers", scan, lambda: containers.judged(scan.containers, pods, policy, now))
    occupied = _occupied(scan, first.verdicts)
    second = _stage("sandboxes", scan, lambda: sandboxes.judged(scan.sandboxes, occupied, pods, now))
    third = _stage(
        "pod_log_directories", scan, lambda: (*logs.folders(scan.log_folders, pods, now), *logs.links(scan.log_links))
    )
    return (first, second, third)


def left_alone(scan: Looked, pods: Pods, policy: Policy, now: int) -> Sequence[Judged]:
    """Plan the stages of a run that removes only dead objects of a lost log (rule `left_alone`).

    Objects of this log are not considered. A sandbox stays while any container in it stays.
    """
    first = _stage("containers", scan, lambda: _lost(scan, containers.judged(scan.containers, pods, policy, now), pods))
    going = {one.id for one in first.verdicts if one.remove}
    if "containers" in scan.errors:
        occupied = frozenset(one.id for one in scan.sandboxes)
    else:
        occupied = frozenset(one.sandbox_id for one in scan.containers if one.id not in going)
    second = _stage("sandboxes", scan, lambda: _lost(scan, sandboxes.judged(scan.sandboxes, occupied, pods, now), pods))
    return (first, second)


def _lost(scan: Looked, verdicts: Iterable[Verdict], pods: Pods) -> Sequence[Verdict]:
    """Return the verdicts on objects of a lost log. Nothing is removed until all pod sources have been read, because
    until then the objects' pods may still be adopted.
    """
    lost = {one.id for one in (*scan.containers, *scan.sandboxes) if not one.of_this_log}
    found = [replace(one, remove=one.rule == "left_alone" and pods.sources_ready) for one in verdicts if one.id in lost]
    return sorted(found, key=lambda one: not one.remove)


def _stage(name: Stage, scan: Looked, judge: Callable[[], Sequence[Verdict]]) -> Judged:
    error = scan.errors.get(name, "")
    return Judged(name, error=error) if error else Judged(name, judge())


def _occupied(scan: Looked, verdicts: Iterable[Verdict]) -> frozenset[str]:
    """Return the sandboxes in which a container remains after the first stage; all sandboxes if containers could not be
    listed.
    """
    if "containers" in scan.errors:
        return frozenset(one.id for one in scan.sandboxes)
    return frozenset(verdict.sandbox_id for verdict in verdicts if not verdict.remove)


def victims(stages: Iterable[Judged]) -> tuple[Victim, ...]:
    """Return the objects to remove, in order."""
    return tuple(verdict.victim() for stage in stages for verdict in stage.verdicts if verdict.remove)


def kept(stages: Iterable[Judged]) -> Mapping[str, int]:
    """Count the objects that are kept, by rule."""
    return Counter[str](verdict.rule for stage in stages for verdict in stage.verdicts if not verdict.remove)


def errors(stages: Iterable[Judged]) -> Sequence[str]:
    """Return the errors of the stages whose objects could not be listed."""
    return [stage.error for stage in stages if stage.error]
