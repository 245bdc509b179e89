"""The port to volumes: the folders and files on the host that pods mount.

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

    `fs_group`: the group that owns created folders and files. `memory_bytes`: the size limits of in-memory volumes, by
    volume name; `files`: the files of downward API volumes, by volume name.
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
        """Create the volumes that are missing. Returns the paths of all wanted volumes, by name."""

    def sub_path(self, part: SubPath) -> str:
        """Return a host path through which the subpath can be mounted; a missing subpath is created as a folder. The
        path never leads outside the volume.
        """

    def remove(self, uid: str) -> None:
        """Remove everything created for this uid, mounts first. Changes nothing else, whatever the folders contain."""

    def last_words_file(self, uid: str, container: str, attempt: int) -> str:
        """Create this attempt's termination message file, writable by everyone, and return its path."""

    def last_words(self, uid: str, container: str, attempt: int, limit: int) -> bytes:
        """Return the last `limit` bytes of the termination message; empty if there is no file."""

    def pod_file(self, uid: str, name: str, content: str | None) -> str:
        """Write `content` to a file that belongs to the pod, unless `content` is None, and return the file's path. A
        running container that mounts the file sees the change.
        """
