"""Images that need no registry: built on the spot when a pod asks for one that is missing.

Comes in: an image's name. Goes out: a root file system to import, None for any other name. Next: pod's effects.
"""

from __future__ import annotations

from chronolet.adapters.images import busybox
from chronolet.ports.runtime.runtime import BuiltImage, Refusal


def builtin(reference: str) -> BuiltImage | None:
    """The pause image. `Refusal(failed)` where what it is made of is missing on this machine."""
    if reference != busybox.PAUSE.reference:
        return None
    try:
        return BuiltImage(archive=busybox.build(), changes=busybox.PAUSE.changes)
    except FileNotFoundError as error:
        raise Refusal("failed", f"{reference}: cannot be built: {error}") from error
