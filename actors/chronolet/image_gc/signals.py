"""Signals from the image collector's workers: scans, and the results of removals."""

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
    """The result of a scan: all images, each with its users among all containers on the machine.

    `intent` is empty for a periodic scan. `disk` is set if the scan may start or continue a run. `looked_before` is
    when the same worker's last successful scan began (milliseconds), 0 if there was none. `error`: why the runtime
    could not be read.
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
    """Answer to RemoveImage: the image no longer exists, no matter who removed it."""

    subject: str
    intent: str


class RemovalRefused(Signal, frozen=True, kw_only=True):
    """Answer to RemoveImage: the image could not be removed; `error` says why."""

    subject: str
    intent: str
    error: str
