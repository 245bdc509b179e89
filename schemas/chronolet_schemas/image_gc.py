"""Images: when they were first detected and last used, and which are removed to free space.

Source: pkg/kubelet/images/image_gc_manager.go. Times are in milliseconds, 0 if not known.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.registry import registered

Trigger = Literal["period", "request", "disk"]
Operation = Literal["collect", "remove_unused"]
Reason = Literal["age", "space", "unused"]
"""Why an image is removed: unused for too long, lack of space, or a request to remove all unused images."""
Kept = Literal["in_use", "pinned", "just_used", "young", "below_threshold", "enough_freed", "not_tried"]
"""Why an image stays. `not_tried`: it was not considered for removal to free space, because an image over the maximum
age could not be removed, or because the disk usage is read again first.
"""


class Policy(Message, frozen=True, kw_only=True):
    """The collector's settings. A maximum age of 0 means none; `pinned` are patterns for names."""

    high_threshold_percent: int = 85
    low_threshold_percent: int = 80
    min_age_milliseconds: int = 120_000
    max_age_milliseconds: int = 0
    pinned: tuple[str, ...] = ()


class Image(Message, frozen=True, kw_only=True):
    """An image on the node. `users` are the first of the `user_count` containers that use it, including dead ones."""

    id: str
    size_bytes: int
    names: tuple[str, ...] = ()
    pinned: bool = False
    users: tuple[str, ...] = ()
    user_count: int = 0


class Candidate(Message, frozen=True, kw_only=True):
    """An image that may be removed, and why."""

    id: str
    name: str
    size_bytes: int
    reason: Reason


@registered
class CollectImages(Command, frozen=True, kw_only=True):
    """`gc run`: start a run now, or as soon as the current one has finished. `unused`: remove all unused images."""

    unused: bool = False


@registered
class PolicySet(Event, frozen=True, kw_only=True):
    """These settings of the named node are in force from now on."""

    node: str
    policy: Policy


@registered
class ImagesChanged(Event, frozen=True, kw_only=True):
    """Differences found by a scan: new and changed images (`seen`), and ids of images that no longer exist (`gone`).

    `used_until` is the time of the last use of each image that was in use before and is not in use in `seen`.
    """

    at: int
    used_until: int
    seen: tuple[Image, ...] = ()
    gone: tuple[str, ...] = ()


@registered
class TimesClamped(Event, frozen=True, kw_only=True):
    """The clock was set back: every recorded time later than `at` is replaced by `at`."""

    at: int


@registered
class RunRequested(Event, frozen=True, kw_only=True):
    """A run in addition to the periodic ones was requested. `request` is the id of the command, empty without a
    command.
    """

    operation: Operation
    trigger: Trigger
    request: str = ""


class RunEvent(Event, frozen=True, kw_only=True):
    """Base class for events about one run; runs are numbered."""

    run: int

    def subject(self) -> str:
        return f"run/{self.run}"


@registered
class RunStarted(RunEvent, frozen=True, kw_only=True):
    """Intent: remove these images in order until `wanted_bytes` are free (None: all of them). `kept` counts the images
    that stay in any case, by reason.

    Images over the maximum age are removed first, even if space is not short. `usage_percent` is the disk usage before
    the run, rounded up. `error` is why the disk usage could not be read. `read_again`: `candidates` are only images
    over the maximum age; after their removal, DiskReadAgain states which images to remove to free space; until then,
    `wanted_bytes` is an estimate, and `kept` counts these images as `not_tried`.
    """

    operation: Operation
    trigger: Trigger
    request: str = ""
    at: int
    capacity_bytes: int = 0
    available_bytes: int = 0
    usage_percent: int = 0
    wanted_bytes: int | None = None
    candidates: tuple[Candidate, ...]
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""
    read_again: bool = False


@registered
class DiskReadAgain(RunEvent, frozen=True, kw_only=True):
    """The images over the maximum age were removed, and the disk usage was read again: remove `candidates` to free
    space until `wanted_bytes` are free.

    All fields have the same meaning as in RunStarted.
    """

    capacity_bytes: int = 0
    available_bytes: int = 0
    usage_percent: int = 0
    wanted_bytes: int | None = None
    candidates: tuple[Candidate, ...] = ()
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""


class ImageEvent(RunEvent, frozen=True, kw_only=True):
    """Base class for the outcome of one removal."""

    id: str
    name: str
    size_bytes: int
    reason: Reason


@registered
class ImageRemoved(ImageEvent, frozen=True, kw_only=True):
    """The image no longer exists."""


@registered
class ImageNotRemoved(ImageEvent, frozen=True, kw_only=True):
    """The runtime refused: the image stays, and the run continues. If the image is over the maximum age, the run does
    not remove images to free space.
    """

    error: str


@registered
class RunFinished(RunEvent, frozen=True, kw_only=True):
    """The run has ended. `error` is why it failed; `kept` counts the images that stay, by reason."""

    operation: Operation
    trigger: Trigger
    request: str = ""
    at: int
    milliseconds: int = 0
    capacity_bytes: int = 0
    available_bytes: int = 0
    usage_percent: int = 0
    wanted_bytes: int | None = None
    freed_bytes: int = 0
    removed: int = 0
    failed: int = 0
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""
