"""Which log folders of pods, and which links to logs, go. Pure.

Comes in: what lies there, the pods. Goes out: a verdict over each. Next: `plan`. Source:
pkg/kubelet/kuberuntime/kuberuntime_gc.go (evictPodLogsDirectories).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chronolet.container_gc.signals import Folder, Link
from chronolet.container_gc.verdicts import NEWS_MS, Pods, Verdict
from chronolet_schemas.container_gc import Rule


def uid_of(folder: str) -> str:
    """The uid in a folder's name: all of it, or what stands behind namespace and name."""
    return folder.rpartition("_")[2]


def folders(found: Iterable[Folder], pods: Pods, now: int) -> Iterator[Verdict]:
    """A pod's folder goes with the pod, once it is sure which pods there are."""
    for one in found:
        uid = uid_of(one.name)
        rule = _rule(uid, one, pods, now)
        yield Verdict(what="log_folder", id=one.name, name=one.name, uid=uid, remove=rule == "deleted_pod", rule=rule)


def _rule(uid: str, one: Folder, pods: Pods, now: int) -> Rule:
    if uid in pods.known:
        return "known_pod"
    if not pods.sources_ready:
        return "sources_not_ready"
    return "news_awaited" if now - one.changed_at < NEWS_MS else "deleted_pod"


def links(found: Iterable[Link]) -> Iterator[Verdict]:
    """A link to nothing goes, unless the container is there: its log may just be rotated."""
    for one in found:
        goes = not one.target_exists and one.container_dead
        yield Verdict(
            what="log_link", id=one.name, name=one.name, remove=goes, rule="dangling" if goes else "not_dangling"
        )
