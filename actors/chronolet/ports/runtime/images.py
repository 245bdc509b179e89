"""The port to the runtime's images and to the disk that stores them.

Output: plain states, or `ports.runtime.runtime.Refusal`. Source: the kubelet's CRI (ListImages, RemoveImage,
ImageFsInfo). Implementations: `adapters.docker_runtime.images`, `adapters.fakes.images`; one contract suite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from chronolet.ports.runtime.runtime import Plain


class HeldImage(Plain, frozen=True, kw_only=True):
    """A stored image. `names`: its tags (`redis:7`), then its registry digests (`redis@sha256:...`)."""

    id: str
    size_bytes: int
    names: Sequence[str] = ()
    labels: Mapping[str, str] = {}


class DiskState(Plain, frozen=True, kw_only=True):
    """A file system. `available_bytes`: the space available to unprivileged processes."""

    capacity_bytes: int
    available_bytes: int


class Images(Protocol):
    """The images of one runtime. Each call may raise `Refusal` and never blocks longer than its own time-out."""

    def list(self) -> Sequence[HeldImage]:
        """All images that have a name, or no child."""

    def remove(self, image_id: str) -> None:
        """Remove an image with all its names; no-op if it is absent. `conflict` if a container uses it, even a dead
        one; the image then keeps its names.
        """

    def disk(self) -> DiskState:
        """The file system that holds the runtime's data; `failed` if its state cannot be read."""

    def close(self) -> None:
        """Close all connections."""
