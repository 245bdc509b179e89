"""Images that the tests of collecting create, by name.

Input: a node. Output: the images' ids, and what the log says about them.
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet_schemas import image_gc
from tests.e2e.node import Node
from tests.support.docker.images import small_image

MEGABYTES = 20
YOUNG_SECONDS = 600


class Images:
    """The images of a test, by name."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.ids: dict[str, str] = {}

    def create(self, *names: str, labelled: Mapping[str, str] | None = None) -> None:
        """Create images one after the other, waiting each time until the log contains the new image."""
        for name in names:
            self.ids[name] = small_image(self._node.docker, [f"{name}:1"], labelled, MEGABYTES)
            self._wait_for(self.ids[name])

    def _wait_for(self, image_id: str) -> None:
        self._node.journal.wait_for(f"{image_id} in the log", lambda: image_id in self._recorded())

    def _recorded(self) -> set[str]:
        return {image.id for image in reported_images(self._node)}

    def use(self, name: str) -> str:
        """Create a container that uses the image and belongs to no pod; return the container's id."""
        created = self._node.docker.create_container(self.ids[name], ["/blob"], name=f"user-of-{name}")["Id"]
        self._node.journal.wait_for(f"the use of {name}", lambda: self._in_use(name))
        return str(created)

    def release(self, name: str, container: str) -> None:
        self._node.docker.remove_container(container)
        self._node.journal.wait_for(f"the release of {name}", lambda: not self._in_use(name))

    def _in_use(self, name: str) -> bool:
        changes = self._node.journal.events(image_gc.ImagesChanged)
        reported = [image for event in changes for image in event.seen if image.id == self.ids[name]]
        return bool(reported[-1].users)

    def name(self, image_id: str) -> str:
        return next(name for name, known in self.ids.items() if known == image_id)

    def existing(self) -> set[str]:
        found = {one["Id"] for one in self._node.docker.images()}
        return {name for name, known in self.ids.items() if known in found}


def reported_images(node: Node) -> list[image_gc.Image]:
    """Return the images reported in the log. An image that is listed before it has its name is reported again with the
    name; only the second report counts.
    """
    return [image for event in node.journal.events(image_gc.ImagesChanged) for image in event.seen if image.names]
