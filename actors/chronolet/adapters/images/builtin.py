"""Images that need no registry: built locally when a pod needs one that is missing.

Input: an image's name. Output: a root file system to import, None for any other name. Next: pod's effects.
"""

from __future__ import annotations

from chronolet.adapters.images import busybox
from chronolet.ports.runtime.runtime import BuiltImage, Refusal


def builtin(reference: str) -> BuiltImage | None:
    """Build the pause image. Raises `Refusal(failed)` if this machine lacks what the image is made of."""
    if reference != busybox.PAUSE.reference:
        return None
    try:
        return BuiltImage(archive=busybox.build(), changes=busybox.PAUSE.changes)
    except FileNotFoundError as error:
        raise Refusal("failed", f"{reference}: cannot be built: {error}") from error
