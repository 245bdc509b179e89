"""The folder in which pods' logs lie, and the one with a link to each container's log.

Comes in: links to make, things to remove. Goes out: what lies there. Implementation: `adapters.pod_logs`. Source:
pkg/kubelet/kuberuntime/helpers.go (BuildPodLogsDirectory), legacy.go, pkg/kubelet/dockershim/docker_container.go
(createContainerLogSymlink). The logs themselves are the runtime's: a pod's folder holds a link to each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class PodLogsRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """Something there cannot be read or removed; the message is one line that names it."""


class LogLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link `<pod>_<namespace>_<container>-<id>.log`. An empty `container_id`: its name is not of that form."""

    name: str
    container_id: str
    target_exists: bool


class LogFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's folder: `<namespace>_<name>_<uid>`, or a uid alone. `changed_at` in milliseconds: when something last
    came into it or went.
    """

    name: str
    changed_at: int = 0


class ContainerLog(msgspec.Struct, frozen=True, kw_only=True):
    """Whose log it is; `pod` is namespace/name."""

    pod: str
    uid: str
    container: str
    id: str


class PodLogs(Protocol):
    """All calls may be repeated at any time, and raise `PodLogsRefusal`. A folder that is not there is empty."""

    @property
    def path(self) -> str:
        """The folder of the pods' folders."""

    def folders(self) -> Sequence[LogFolder]:
        """The pods' folders."""

    def links(self) -> Sequence[LogLink]:
        """The links to containers' logs."""

    def link(self, log: ContainerLog, attempt: int, target: str) -> None:
        """Let `<namespace>_<name>_<uid>/<container>/<attempt>.log` lead to `target`, and a link of `links` to that."""

    def unlink(self, log: ContainerLog) -> None:
        """Remove both; nothing happens where there is none."""

    def remove_folder(self, name: str) -> None:
        """Remove a pod's folder with all it holds; nothing happens if it is not there."""

    def remove_link(self, name: str) -> None:
        """Remove a link whose target is missing; one whose target is there stays, and so does what is no link."""


class NoPodLogs:
    """Nobody reads logs by their place."""

    path = ""

    def folders(self) -> Sequence[LogFolder]:
        return ()

    def links(self) -> Sequence[LogLink]:
        return ()

    def link(self, log: ContainerLog, attempt: int, target: str) -> None:
        """Nowhere."""

    def unlink(self, log: ContainerLog) -> None:
        """There is none."""

    def remove_folder(self, name: str) -> None:
        """There is none."""

    def remove_link(self, name: str) -> None:
        """There is none."""


def folder_of(pod: str, uid: str) -> str:
    """The name of a pod's folder; `pod` is namespace/name."""
    return f"{pod.replace('/', '_')}_{uid}"
