"""The images port on a Docker Engine.

Input: calls by effect workers and readers, from any thread. Output: calls to the engine; capacity and free space of its
disk. Next: `connection`. Corresponds to pkg/kubelet/cri/remote/remote_image.go, and to cAdvisor's file system figures.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from chronolet.adapters.docker_runtime.connection import ABSENT, Connection, Permit
from chronolet.adapters.docker_runtime.runtime import DEFAULT_HOST
from chronolet.ports.runtime.images import DiskState, HeldImage
from chronolet.ports.runtime.runtime import Refusal

_LIST_SECONDS = 60.0
_REMOVE_SECONDS = 120.0
_NONE = "<none>"
_SEVERAL_NAMES = "must be forced"


class _Held(msgspec.Struct):
    """An image in a listing. Fields are spelt as Docker spells them."""

    Id: str
    Size: int
    RepoTags: list[str] | None = None
    RepoDigests: list[str] | None = None
    Labels: dict[str, str] | None = None


class _Info(msgspec.Struct):
    DockerRootDir: str = ""


class _Container(msgspec.Struct):
    Id: str


_held = msgspec.json.Decoder(list[_Held])
_one = msgspec.json.Decoder(_Held)
_info = msgspec.json.Decoder(_Info)
_containers = msgspec.json.Decoder(list[_Container])


class DockerImages:
    """Implements `ports.runtime.images.Images` on the engine at `host`. Connects on the first call. `permit` raises
    `Refusal` if the engine must not be used, see `Connection`.
    """

    def __init__(
        self, host: str = DEFAULT_HOST, *, timeout_seconds: float = 30.0, permit: Permit = lambda: None
    ) -> None:
        self._connection = Connection(host, timeout_seconds=timeout_seconds, pool_size=2, permit=permit)
        self._root = ""

    def list(self) -> Sequence[HeldImage]:
        found = _held.decode(self._connection.call("GET", "/images/json", timeout_seconds=_LIST_SECONDS))
        return [
            HeldImage(id=one.Id, size_bytes=one.Size, names=tuple(_names(one)), labels=one.Labels or {})
            for one in found
        ]

    def remove(self, image_id: str) -> None:
        try:
            self._remove(image_id)
        except Refusal as refusal:
            if refusal.kind != "conflict" or _SEVERAL_NAMES not in str(refusal):
                raise
            self._remove_names(image_id)

    def disk(self) -> DiskState:
        # The engine is not asked, because it reports disk figures only for some storage drivers.
        self._root = self._root or _info.decode(self._connection.call("GET", "/info")).DockerRootDir
        try:
            found = os.statvfs(self._root)
        except OSError as error:
            raise Refusal("failed", f"{self._root}: {error.strerror or error}") from error
        return DiskState(
            capacity_bytes=found.f_blocks * found.f_frsize, available_bytes=found.f_bavail * found.f_frsize
        )

    def close(self) -> None:
        self._connection.close()

    def _remove_names(self, image_id: str) -> None:
        """Remove an image that has several names. The engine refuses to remove such an image by id, but removes names
        without checking whether containers use the image; so this method checks first.
        """
        filters = msgspec.json.encode({"ancestor": [image_id]}).decode()
        query = {"all": "1", "filters": filters}
        reply = self._connection.call("GET", "/containers/json", query, timeout_seconds=_LIST_SECONDS)
        if users := _containers.decode(reply):
            raise Refusal("conflict", f"{image_id}: in use by container {users[0].Id}")
        for name in self._names(image_id):
            self._remove(name)
        self._remove(image_id)

    def _names(self, image_id: str) -> Sequence[str]:
        found = self._connection.call_unless(ABSENT, "GET", f"/images/{image_id}/json")
        return () if found is None else _names(_one.decode(found))

    def _remove(self, name: str) -> None:
        path = f"/images/{quote(name, safe='/:@')}"
        self._connection.call_unless(ABSENT, "DELETE", path, timeout_seconds=_REMOVE_SECONDS)


def _names(one: _Held) -> Sequence[str]:
    """Return the image's tags, then its digests, without Docker's `<none>` placeholders."""
    return [name for names in (one.RepoTags, one.RepoDigests) for name in names or () if _NONE not in name]
