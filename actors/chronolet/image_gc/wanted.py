"""Effects of the image collector. Input: none. Output: Effect Structs for `effects`.

Metrics and the log show the class names, so they keep the older word "look" for a scan.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class WatchImages(Effect, frozen=True, kw_only=True):
    """Standing: list images and their users immediately, then at short intervals. Sends Looked without `disk`."""


class LookPeriodically(Effect, frozen=True, kw_only=True):
    """Standing: list images and read the disk usage immediately, then at longer intervals. Sends Looked with `disk`;
    each one may start a run.
    """


class Look(Effect, frozen=True, kw_only=True):
    """List images and read the disk usage once, for a requested run or in the middle of a run. Result: Looked with
    `disk`.
    """


class RemoveImage(Effect, frozen=True, kw_only=True):
    """Remove an image with all its names, unless a container uses it. Result: RemovalDone or RemovalRefused."""

    id: str
