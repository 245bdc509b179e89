"""The folders and files of the host that pods see as volumes.

Comes in: a pod's volumes. Goes out: a path of the host for each. Implementation: `adapters.volumes`. Answers to
pkg/volume/emptydir, pkg/volume/hostpath, pkg/volume/downwardapi, pkg/volume/util/subpath.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from chronolet_schemas.podspec import Volume


class VolumeRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A volume cannot be had or removed; the message is one line that names it."""


class VolumeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a volume; `path` has no `..` and begins within it."""

    path: str
    content: str
    mode: int


class PodVolumes(msgspec.Struct, frozen=True, kw_only=True):
    """All volumes of one life of a pod.

    `fs_group` owns what is made for it. `memory_bytes` bounds volumes in memory, `files` are what a volume of the pod's
    own fields holds, both by the volume's name.
    """

    uid: str
    volumes: Sequence[Volume] = ()
    fs_group: int | None = None
    memory_bytes: Mapping[str, int] = {}
    files: Mapping[str, Sequence[VolumeFile]] = {}


class SubPath(msgspec.Struct, frozen=True, kw_only=True):
    """The part `path` of the volume that `prepare` said to be at `source`; `index` is the mount's number in its
    container.
    """

    uid: str
    volume: str
    source: str
    container: str
    index: int
    path: str


class Volumes(Protocol):
    """All calls may be repeated at any time and raise `VolumeRefusal`."""

    def prepare(self, wanted: PodVolumes) -> Mapping[str, str]:
        """See that each volume is there; its path by the volume's name."""

    def sub_path(self, part: SubPath) -> str:
        """The path of a place that shows a part of a volume, made as a folder if it is not there. It never shows
        anything outside of the volume.
        """

    def remove(self, uid: str) -> None:
        """Remove all that was made for this uid, mounts first. Nothing outside is touched, whatever lies in it."""

    def last_words_file(self, uid: str, container: str, attempt: int) -> str:
        """The path of the file that this attempt writes its termination message to, there and writable by anyone."""

    def last_words(self, uid: str, container: str, attempt: int, limit: int) -> bytes:
        """The end of what it wrote, at most that many bytes; empty if there is no file."""

    def pod_file(self, uid: str, name: str, content: str | None) -> str:
        """The path of a file of the pod's own with this content; who has it mounted sees a change of it. None: only
        the path, nothing is written.
        """
