"""The port to the runtime's images and to the disk that stores them.

Output: plain states, or `ports.runtime.runtime.Refusal`. Source: the kubelet's CRI (ListImages, RemoveImage,
ImageFsInfo). Implementations: `adapters.docker_runtime.images`, `adapters.fakes.images`; one contract suite tests both.
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
    """The size and free space of a file system. `available_bytes`: the space available to unprivileged processes."""

    capacity_bytes: int
    available_bytes: int


class Images(Protocol):
    """The images of one runtime. Each call may raise `Refusal`; the kinds that callers handle are named below (such as
    `conflict`). Each request to the runtime has a time-out.
    """

    def list(self) -> Sequence[HeldImage]:
        """Return all images that have a name or no child image."""

    def remove(self, image_id: str) -> None:
        """Remove an image with all its names; no-op if it is absent. Raises `conflict` if a container, even a dead one,
        uses the image, which then keeps its names.
        """

    def disk(self) -> DiskState:
        """Return the state of the file system that holds the runtime's data. Raises `failed` if it cannot be read."""

    def close(self) -> None:
        """Close all connections."""
