"""Images that need no registry: built on this machine when a pod needs one that is missing.

Input: an image's name. Output: a root file system to import, or None if there is no such image. Next: pod's effects.
"""

from __future__ import annotations

from chronolet.adapters.images import busybox
from chronolet.ports.runtime.runtime import BuiltImage, Refusal


def builtin(reference: str) -> BuiltImage | None:
    """Build the pause image; return None for any other reference. Raises `Refusal(failed)` if this machine has no
    suitable busybox.
    """
    if reference != busybox.PAUSE.reference:
        return None
    try:
        return BuiltImage(archive=busybox.build(), changes=busybox.PAUSE.changes)
    except FileNotFoundError as error:
        raise Refusal("failed", f"{reference}: cannot be built: {error}") from error
