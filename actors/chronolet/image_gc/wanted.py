"""What the collector of images wants to have running. Comes in: nothing. Goes out: Effect Structs for `effects`."""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class WatchImages(Effect, frozen=True, kw_only=True):
    """Standing: look at the images and their users now and after each short period; sends Looked without a disk."""


class LookPeriodically(Effect, frozen=True, kw_only=True):
    """Standing: look now and after each long period; sends Looked with the disk. A run follows from each look."""


class Look(Effect, frozen=True, kw_only=True):
    """Look once, for a run that was asked for. Answers: Looked, with the disk."""


class RemoveImage(Effect, frozen=True, kw_only=True):
    """Remove an image with all its names, unless some container has it. Answers: RemovalDone, RemovalRefused."""

    id: str
