"""The port to volumes: the folders and files of the host that pods mount.

Input: a pod's volumes. Output: a path on the host for each. Implementation: `adapters.volumes`. Source:
pkg/volume/emptydir, pkg/volume/hostpath, pkg/volume/downwardapi, pkg/volume/util/subpath.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from chronolet_schemas.podspec import Volume


class VolumeRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A volume cannot be prepared or removed; the message is one line that names it."""


class VolumeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a volume. `path` is relative to the volume and contains no `..`."""

    path: str
    content: str
    mode: int


class PodVolumes(msgspec.Struct, frozen=True, kw_only=True):
    """All volumes of the pod with this uid.

    `fs_group`: the group that owns created folders and files. `memory_bytes`: size limits of volumes in memory;
    `files`: contents of downward API volumes; both by the volume's name.
    """

    uid: str
    volumes: Sequence[Volume] = ()
    fs_group: int | None = None
    memory_bytes: Mapping[str, int] = {}
    files: Mapping[str, Sequence[VolumeFile]] = {}


class SubPath(msgspec.Struct, frozen=True, kw_only=True):
    """The subpath `path` of a volume. `source`: the volume's path as returned by `prepare`; `index`: the mount's index
    in its container.
    """

    uid: str
    volume: str
    source: str
    container: str
    index: int
    path: str


class Volumes(Protocol):
    """The volumes of pods. All calls are idempotent and may raise `VolumeRefusal`."""

    def prepare(self, wanted: PodVolumes) -> Mapping[str, str]:
        """Create the volumes that are missing; returns their paths by volume name."""

    def sub_path(self, part: SubPath) -> str:
        """A host path through which the subpath can be mounted; a missing subpath is created as a folder. The path
        never leads outside the volume.
        """

    def remove(self, uid: str) -> None:
        """Remove everything created for this uid, mounts first. Touches nothing outside, whatever the folders hold."""

    def last_words_file(self, uid: str, container: str, attempt: int) -> str:
        """Path of this attempt's termination message file, which is created and writable by everyone."""

    def last_words(self, uid: str, container: str, attempt: int, limit: int) -> bytes:
        """The last `limit` bytes of the termination message; empty if there is no file."""

    def pod_file(self, uid: str, name: str, content: str | None) -> str:
        """Path of a file that belongs to the pod, with this content; a running container that mounts it sees the
        change. None: return the path without writing.
        """
