"""The folder in which pods' logs lie, and the one with a link to each container's log.

Comes in: nothing. Goes out: what lies there. Implementation: `adapters.pod_logs`. Source:
pkg/kubelet/kuberuntime/helpers.go (BuildPodLogsDirectory), legacy.go.
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


class PodLogs(Protocol):
    """All calls may be repeated at any time, and raise `PodLogsRefusal`. A folder that is not there is empty."""

    @property
    def path(self) -> str:
        """The folder of the pods' folders."""

    def folders(self) -> Sequence[str]:
        """The names of the pods' folders: `<namespace>_<name>_<uid>`, or a uid alone."""

    def links(self) -> Sequence[LogLink]:
        """The links to containers' logs."""

    def remove_folder(self, name: str) -> None:
        """Remove a pod's folder with all it holds; nothing happens if it is not there."""

    def remove_link(self, name: str) -> None:
        """Remove a link whose target is missing; one whose target is there stays, and so does what is no link."""
