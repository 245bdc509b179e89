"""The images that the runtime holds, and the disk they lie on.

Comes in: nothing. Goes out: plain states, or `runtime.Refusal`. Source: the kubelet's CRI (ListImages, RemoveImage,
ImageFsInfo). Implementations: `adapters.docker_runtime.images`, `adapters.fake_images`; one contract suite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from chronolet.ports.runtime.runtime import Plain


class HeldImage(Plain, frozen=True, kw_only=True):
    """An image. `names` are its tags (`redis:7`), then the digests by which registries know it (`redis@sha256:...`)."""

    id: str
    size_bytes: int
    names: Sequence[str] = ()
    labels: Mapping[str, str] = {}


class DiskState(Plain, frozen=True, kw_only=True):
    """A file system. `available_bytes` is what anybody may still write."""

    capacity_bytes: int
    available_bytes: int


class Images(Protocol):
    """Each call raises `Refusal`, and never waits longer than its own time-out."""

    def list(self) -> Sequence[HeldImage]:
        """All images that have a name, or no child."""

    def remove(self, image_id: str) -> None:
        """Remove an image with all its names; nothing happens if it is not there. `conflict` if a container has it, be
        it dead: then it keeps its names, too.
        """

    def disk(self) -> DiskState:
        """The disk that holds the runtime's data; `failed` if it cannot be read."""

    def close(self) -> None:
        """Give back connections."""
