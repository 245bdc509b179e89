"""Records which images were on the node when, who used them, and why each was removed. Pure.

Input: the states of `image_gc` and `pod` along the log, and the events of `image_gc`. Output: `Image`, in the order in
which they appeared. Next: `images`, which prints them.

The uses by pods are those that their states tell. The uses by other containers of the machine are those that the image
collector has found in its scans, so they begin and end at the time of a scan, and those between two scans are unknown.
A pod's use ends with the pod, although its dead containers may keep the image until they are collected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from chronolet.image_gc.state import Record, Run
from chronolet.image_gc.state import State as Images
from chronolet.pod.state import State as Pod
from chronolet_schemas import image_gc
from chronolet_schemas.envelope import Event

_REASONS: Mapping[image_gc.Reason, str] = {
    "age": "unused for longer than the maximum age",
    "space": "to free space",
    "unused": "requested: all unused images",
}
_ELSEWHERE = "removed by another program"


class Use(NamedTuple):
    """The time in which a container used an image, in milliseconds since the epoch; `end` is None if it still does.

    `user` is namespace/pod/container, or the name of a container that belongs to no pod.
    """

    user: str
    begin: int
    end: int | None = None


class Refusal(NamedTuple):
    """The collector could not remove the image."""

    at: int
    error: str


@dataclass(slots=True)
class Image:
    """An image. `begin`: when it was first detected, 0 if unknown; `end`: when it was gone, None if it is there;
    `removed`: why. An image that is pulled again later begins anew.
    """

    id: str
    names: tuple[str, ...] = ()
    begin: int = 0
    end: int | None = None
    removed: str = ""
    uses: list[Use] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


class Recorder:
    """Images in the making. `images`, `pods`: the states at the moment `at`, where the record begins."""

    def __init__(self, images: Images, pods: Mapping[str, Pod], at: int) -> None:
        self._images: list[Image] = []
        self._present: dict[str, Image] = {}
        self._open: dict[tuple[str, str], int] = {}
        """The beginning of each open use, by image and user."""
        self._of_pods: dict[str, frozenset[tuple[str, str]]] = {}
        self._state = Images()
        for key, pod in pods.items():
            self.take_pod(key, pod, at)
        self._look(images, None, at)

    def take_images(self, state: Images, event: Event | None, at: int) -> None:
        """Record the collector's state after an entry, whose event is None if it cannot be decoded."""
        if isinstance(event, image_gc.ImageNotRemoved) and event.id in self._present:
            self._present[event.id].refusals.append(Refusal(at, event.error))
        self._look(state, event, at)

    def take_pod(self, key: str, state: Pod | None, at: int) -> None:
        """Record the next state of the pod `namespace/name`; None: it is gone."""
        former = self._of_pods.get(key, frozenset())
        now = frozenset(_used_by(key, state)) if state is not None else frozenset()
        for one in sorted(former - now):
            self._finish(one, at)
        for one in sorted(now - former):
            self._begin(one, at)
        for container in state.containers if state is not None else ():
            if (image := self._present.get(container.image_id)) is not None:
                image.names = image.names or (container.image,)  # until the collector has scanned it
        self._of_pods[key] = now

    def images(self) -> list[Image]:
        """Return all images, ordered by the first detection. Open uses have no end."""
        for (image, user), begin in self._open.items():
            self._known(image).uses.append(Use(user, begin))
        self._open.clear()
        for one in self._images:
            one.uses.sort(key=lambda use: (use.begin, use.user))
        return sorted(self._images, key=lambda one: (one.begin, one.id))

    def _look(self, state: Images, event: Event | None, at: int) -> None:
        before, after, run = self._state.records, state.records, self._state.run
        self._state = state
        if before is after:
            return
        for gone in [key for key in before if key not in after]:
            for user in [user for image, user in self._open if image == gone]:
                self._finish((gone, user), at)
            if (image := self._present.pop(gone, None)) is not None:
                image.end, image.removed = at, _why(event, run)
        for key, record in after.items():
            if before.get(key) is not record:
                self._see(record, before.get(key), at)

    def _see(self, record: Record, former: Record | None, at: int) -> None:
        image = self._known(record.image.id)
        image.names = record.image.names or image.names
        image.begin = image.begin or record.first_detected
        users = {user for user in record.image.users if not self._is_of_pod(user)}
        were = {user for user in former.image.users if not self._is_of_pod(user)} if former is not None else set()
        for user in sorted(were - users):
            self._finish((image.id, user), at)
        for user in sorted(users - were):
            self._begin((image.id, user), at)

    def _is_of_pod(self, user: str) -> bool:
        """Return whether a user is a container of a pod that the log has or had."""
        return user.rpartition("/")[0] in self._of_pods

    def _known(self, key: str) -> Image:
        if key not in self._present:
            self._present[key] = Image(key)
            self._images.append(self._present[key])
        return self._present[key]

    def _begin(self, use: tuple[str, str], at: int) -> None:
        self._known(use[0])
        self._open.setdefault(use, at)

    def _finish(self, use: tuple[str, str], at: int) -> None:
        begin = self._open.pop(use, None)
        if begin is not None:
            self._known(use[0]).uses.append(Use(use[1], begin, at))


def _used_by(key: str, state: Pod) -> Iterator[tuple[str, str]]:
    """Yield the images that the pod's containers use, with the user's name: those that were started at least once."""
    for one in state.containers:
        if one.image_id and (one.alive or one.exit is not None):
            yield one.image_id, f"{key}/{one.name}"


def _why(event: Event | None, run: Run | None) -> str:
    if not isinstance(event, image_gc.ImageRemoved):
        return _ELSEWHERE
    usage = f", disk {run.usage_percent} % full" if run is not None and event.reason == "space" else ""
    return f"{_REASONS[event.reason]}{usage} (run {event.run})"
