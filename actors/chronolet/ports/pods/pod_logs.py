"""The port to the pods' log folders and to the folder with a link to each container's log.

Input: links to create, links and folders to remove. Output: the links and folders that exist. The logs belong to the
runtime; a pod's folder holds only links to them. Implementation: `adapters.state_folder.pod_logs`. Source:
pkg/kubelet/kuberuntime/helpers.go (BuildPodLogsDirectory), legacy.go, pkg/kubelet/dockershim/docker_container.go
(createContainerLogSymlink).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class PodLogsRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A folder or link cannot be read or removed; the message is one line that names it."""


class LogLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link `<pod>_<namespace>_<container>-<id>.log`. `container_id` is empty if the name has another form."""

    name: str
    container_id: str
    target_exists: bool


class LogFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's folder, named `<namespace>_<name>_<uid>` or only `<uid>`. `changed_at`: when an entry was last added or
    removed, in milliseconds.
    """

    name: str
    changed_at: int = 0


class ContainerLog(msgspec.Struct, frozen=True, kw_only=True):
    """The container that a log belongs to; `pod` is namespace/name."""

    pod: str
    uid: str
    container: str
    id: str


class PodLogs(Protocol):
    """The log folders. Calls are idempotent and may raise `PodLogsRefusal`. A missing folder counts as empty."""

    @property
    def path(self) -> str:
        """The folder of the pods' folders."""

    def folders(self) -> Sequence[LogFolder]:
        """The pods' folders."""

    def links(self) -> Sequence[LogLink]:
        """The links to containers' logs."""

    def link(self, log: ContainerLog, attempt: int, target: str) -> None:
        """Link `<namespace>_<name>_<uid>/<container>/<attempt>.log` to `target`, and one of `links` to that link."""

    def unlink(self, log: ContainerLog) -> None:
        """Remove both links; no-op if they are absent."""

    def remove_folder(self, name: str) -> None:
        """Remove a pod's folder with its content; no-op if it is absent."""

    def remove_link(self, name: str) -> None:
        """Remove a dangling link; a link with an existing target stays, and so does a file that is not a link."""


class NoPodLogs:
    """A `PodLogs` for nodes without log folders."""

    path = ""

    def folders(self) -> Sequence[LogFolder]:
        return ()

    def links(self) -> Sequence[LogLink]:
        return ()

    def link(self, log: ContainerLog, attempt: int, target: str) -> None:
        """Do nothing."""

    def unlink(self, log: ContainerLog) -> None:
        """Do nothing."""

    def remove_folder(self, name: str) -> None:
        """Do nothing."""

    def remove_link(self, name: str) -> None:
        """Do nothing."""


def folder_of(pod: str, uid: str) -> str:
    """The name of a pod's folder; `pod` is namespace/name."""
    return f"{pod.replace('/', '_')}_{uid}"
