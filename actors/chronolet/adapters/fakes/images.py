"""An in-memory image store that fulfils the same contract as the Docker adapter.

Input: the port's calls, and the images, users and refusals that a test or a trial run sets. Output: the port's states.
Next: users of `ports.runtime.images.Images`. `tests/contracts/test_images.py` tests both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chronolet.ports.runtime.images import DiskState, HeldImage
from chronolet.ports.runtime.runtime import Refusal


class FakeImages:
    """Implements `ports.runtime.images.Images` in memory. Removing images frees disk space. `users` holds the ids of
    images in use.
    """

    def __init__(
        self, images: Iterable[HeldImage] = (), *, capacity_bytes: int = 1 << 30, other_bytes: int = 0
    ) -> None:
        self.images = {one.id: one for one in images}
        self.users: set[str] = set()
        self.refusals: dict[str, Refusal] = {}
        """The errors to raise, keyed by image id, or by `list` or `disk`."""
        self.removed: list[str] = []
        self._capacity = capacity_bytes
        self._other = other_bytes

    def list(self) -> Sequence[HeldImage]:
        self._check("list")
        return list(self.images.values())

    def remove(self, image_id: str) -> None:
        self._check(image_id)
        if image_id in self.users:
            raise Refusal("conflict", f"conflict: unable to delete {image_id}: image is being used by a container")
        if self.images.pop(image_id, None) is not None:
            self.removed.append(image_id)

    def disk(self) -> DiskState:
        self._check("disk")
        used = self._other + sum(one.size_bytes for one in self.images.values())
        return DiskState(capacity_bytes=self._capacity, available_bytes=max(self._capacity - used, 0))

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _check(self, what: str) -> None:
        if what in self.refusals:
            raise self.refusals[what]
