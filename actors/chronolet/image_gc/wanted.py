"""Effects of the image collector. Input: none. Output: Effect Structs for `effects`."""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class WatchImages(Effect, frozen=True, kw_only=True):
    """Standing: look at images and their users immediately and after each short period; sends Looked without a disk."""


class LookPeriodically(Effect, frozen=True, kw_only=True):
    """Standing: look immediately and after each long period; sends Looked with the disk. Each look may start a run."""


class Look(Effect, frozen=True, kw_only=True):
    """Look once, for a requested run. Result: Looked, with the disk."""


class RemoveImage(Effect, frozen=True, kw_only=True):
    """Remove an image with all its names, unless a container uses it. Result: RemovalDone or RemovalRefused."""

    id: str
