"""The folders and files of the host that pods see as volumes.

Comes in: a pod's volumes. Goes out: a path of the host for each. Implementation: `adapters.volumes`. Answers to
pkg/volume/emptydir and pkg/volume/hostpath.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from chronolet_schemas.podspec import Volume


class VolumeRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A volume cannot be had or removed; the message is one line that names it."""


class Volumes(Protocol):
    """All calls may be repeated at any time and raise `VolumeRefusal`."""

    def prepare(self, uid: str, volumes: Sequence[Volume]) -> Mapping[str, str]:
        """See that each volume is there; its path by the volume's name."""

    def remove(self, uid: str) -> None:
        """Remove all that `prepare` made for this uid. Nothing outside of it is touched, whatever lies in it."""

    def last_words_file(self, uid: str, container: str, attempt: int) -> str:
        """The path of the file that this attempt writes its termination message to, there and writable by anyone."""

    def last_words(self, uid: str, container: str, attempt: int, limit: int) -> bytes:
        """The end of what it wrote, at most that many bytes; empty if there is no file."""

    def pod_file(self, uid: str, name: str, content: str) -> str:
        """The path of a file of the pod's own with this content; who has it mounted sees a change of it."""
