"""Images: since when they are known, when they were last used, and which go for want of room. Source:
pkg/kubelet/images/image_gc_manager.go.

Times in milliseconds, 0 for longer ago than anybody knows.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.registry import registered

Trigger = Literal["period", "request", "disk"]
Operation = Literal["collect", "remove_unused"]
Reason = Literal["age", "space", "unused"]
"""Why an image goes: not used for too long, for want of room, or because all that is not used was to go."""
Kept = Literal["in_use", "pinned", "just_used", "young", "below_threshold", "enough_freed", "not_tried"]
"""Why an image stays. Not tried: what was too old to stay could not be removed, and ended the run."""


class Policy(Message, frozen=True, kw_only=True):
    """What the settings say. A maximum age of 0 is none; `pinned` are patterns of names."""

    high_threshold_percent: int = 85
    low_threshold_percent: int = 80
    min_age_milliseconds: int = 120_000
    max_age_milliseconds: int = 0
    pinned: tuple[str, ...] = ()


class Image(Message, frozen=True, kw_only=True):
    """An image that is there. `users` are the first containers that have it, of `user_count`, dead ones too."""

    id: str
    size_bytes: int
    names: tuple[str, ...] = ()
    pinned: bool = False
    users: tuple[str, ...] = ()
    user_count: int = 0


class Candidate(Message, frozen=True, kw_only=True):
    """An image that may go, and why."""

    id: str
    name: str
    size_bytes: int
    reason: Reason


@registered
class CollectImages(Command, frozen=True, kw_only=True):
    """`gc run`: begin a run now, or as soon as the present one is over. `unused`: all that is not used goes."""

    unused: bool = False


@registered
class PolicySet(Event, frozen=True, kw_only=True):
    """From now on these settings hold, on the node of that name."""

    node: str
    policy: Policy


@registered
class ImagesChanged(Event, frozen=True, kw_only=True):
    """What a look found that is new: images that came or are otherwise now, and images that went.

    One that was in use before and is not in use in `seen` was last used at `used_until`.
    """

    at: int
    used_until: int
    seen: tuple[Image, ...] = ()
    gone: tuple[str, ...] = ()


@registered
class TimesClamped(Event, frozen=True, kw_only=True):
    """The clock was set back: whatever was noted for a later time than this counts as of now."""

    at: int


@registered
class RunRequested(Event, frozen=True, kw_only=True):
    """A run beside the periodic ones is to begin; `request` is the command's id, empty where nobody asked."""

    operation: Operation
    trigger: Trigger
    request: str = ""


class RunEvent(Event, frozen=True, kw_only=True):
    """About one run; they are numbered."""

    run: int

    def subject(self) -> str:
        return f"run/{self.run}"


@registered
class RunStarted(RunEvent, frozen=True, kw_only=True):
    """Intent: these go one after the other, until `wanted_bytes` are free (None: all of them). `kept` counts those
    that stay whatever happens, by reason.

    What is to go for its age goes first and in any case. `usage_percent` is the disk's before the run, rounded up.
    `error` is why the disk could not be read. `read_again`: `candidates` go for their age only; what goes for want of
    room is decided after them, by another look (DiskReadAgain), and `wanted_bytes` is an estimate until then.
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
    """What was too old has gone, and the disk was read again: `candidates` go for want of room, until `wanted_bytes`
    are free. `kept`, `error` and the rest as in RunStarted.
    """

    capacity_bytes: int = 0
    available_bytes: int = 0
    usage_percent: int = 0
    wanted_bytes: int | None = None
    candidates: tuple[Candidate, ...] = ()
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""


class ImageEvent(RunEvent, frozen=True, kw_only=True):
    """What became of one image of the run."""

    id: str
    name: str
    size_bytes: int
    reason: Reason


@registered
class ImageRemoved(ImageEvent, frozen=True, kw_only=True):
    """It is gone."""


@registered
class ImageNotRemoved(ImageEvent, frozen=True, kw_only=True):
    """The runtime refused: it stays, and the next one is tried."""

    error: str


@registered
class RunFinished(RunEvent, frozen=True, kw_only=True):
    """The run is over. `error` is why it failed; `kept` counts the images that stay, by reason."""

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
