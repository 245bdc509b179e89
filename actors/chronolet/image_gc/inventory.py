"""Scan the node: list images and their users, and read the disk usage, with read-only calls.

Input: the runtime. Output: `signals.Looked`. Next: `decider`, or `gc plan`, which makes the same scan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from chronolet.image_gc.planning.pinning import pinned
from chronolet.image_gc.signals import Disk, Looked
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.images import HeldImage, Images
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime
from chronolet_schemas.image_gc import Image, Policy

_NAMED_USERS = 10


class Inventory(Struct, frozen=True):
    """Lists images and their users. A scan also reports the settings in force."""

    runtime: Runtime
    images: Images
    node: str
    policy: Policy

    def scan(
        self,
        subject: str = "",
        intent: str = "",
        *,
        with_disk: bool,
        looked_before: int = 0,
        fence: Callable[[str], None] = lambda _: None,
    ) -> Looked:
        """List images and their users once, and read the disk usage if `with_disk`. `fence` is called before each
        runtime call.
        """
        error = ""
        found: tuple[Image, ...] = ()
        try:
            fence("docker.images")
            held = self.images.list()
            # Images first: an image that comes into use before containers are listed counts as in use.
            fence("docker.list")
            users = _users(self.runtime.list({}))
            found = tuple(self._image(one, users.get(one.id, ())) for one in held)
        except Refusal as refusal:
            error = str(refusal)
        return Looked(
            subject=subject,
            intent=intent,
            node=self.node,
            policy=self.policy,
            images=found,
            looked_before=looked_before,
            disk=self._disk(fence) if with_disk else None,
            error=error,
        )

    def _image(self, held: HeldImage, users: Iterable[str]) -> Image:
        named = sorted(users)
        return Image(
            id=held.id,
            size_bytes=held.size_bytes,
            names=tuple(held.names),
            pinned=pinned(held.id, held.names, held.labels, self.policy.pinned),
            users=tuple(named[:_NAMED_USERS]),
            user_count=len(named),
        )

    def _disk(self, fence: Callable[[str], None]) -> Disk:
        try:
            fence("docker.disk")
            found = self.images.disk()
        except Refusal as refusal:
            return Disk(error=str(refusal))
        return Disk(capacity_bytes=found.capacity_bytes, available_bytes=found.available_bytes)


def _users(containers: Iterable[ContainerState]) -> Mapping[str, set[str]]:
    """Map the id of each image to the names of its containers on the whole machine. The name of a container of this
    node omits the attempt, which changes.
    """
    users: defaultdict[str, set[str]] = defaultdict(set)
    for one in containers:
        owner = labels.read(one.labels)
        users[one.image_id].add(f"{owner.pod}/{owner.container}" if owner else one.name)
    return users
