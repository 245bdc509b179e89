"""Decide which pod log folders and links to logs to remove. Pure.

Input: the folders and links found, the pods. Output: one verdict each. Next: `plan`. Source:
pkg/kubelet/kuberuntime/kuberuntime_gc.go (evictPodLogsDirectories).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chronolet.container_gc.planning.verdicts import NEWS_MS, Pods, Verdict
from chronolet.container_gc.signals import Folder, Link
from chronolet_schemas.container_gc import Rule


def uid_of(folder: str) -> str:
    """Return the uid in a folder's name: the whole name, or the part after namespace and name."""
    return folder.rpartition("_")[2]


def folders(found: Iterable[Folder], pods: Pods, now: int) -> Iterator[Verdict]:
    """Yield a verdict on each folder. A deleted pod's folder is removed once all pod sources have been read and the
    folder has not changed for NEWS_MS.
    """
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
    """Yield a verdict on each link.

    A link without a target is removed if its container has exited or no longer exists. Otherwise, the log may be in the
    middle of a rotation.
    """
    for one in found:
        goes = not one.target_exists and one.container_dead
        yield Verdict(
            what="log_link", id=one.name, name=one.name, remove=goes, rule="dangling" if goes else "not_dangling"
        )
