"""Results of the collector's effects: images, disk usage, how a removal ended."""

from __future__ import annotations

from collections.abc import Sequence

from chronolet_schemas import image_gc
from chronolet_schemas.envelope import Message, Signal


class Disk(Message, frozen=True, kw_only=True):
    """The disk that holds the runtime's data; `error` says why it could not be read."""

    capacity_bytes: int = 0
    available_bytes: int = 0
    error: str = ""


class Looked(Signal, frozen=True, kw_only=True):
    """All images, each with its users among all containers of the machine.

    `intent` is empty for a periodic look. `disk` is set if a run is to follow. `looked_before` is when the same worker
    last looked (milliseconds), 0 if never. `error`: why the runtime could not be read.
    """

    subject: str = ""
    intent: str = ""
    node: str
    policy: image_gc.Policy
    images: Sequence[image_gc.Image] = ()
    looked_before: int = 0
    disk: Disk | None = None
    error: str = ""


class RemovalDone(Signal, frozen=True, kw_only=True):
    """The image is gone, by this call or before it."""

    subject: str
    intent: str


class RemovalRefused(Signal, frozen=True, kw_only=True):
    """The image still exists."""

    subject: str
    intent: str
    error: str
