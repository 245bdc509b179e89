"""Decides which images must never be removed. Pure.

Input: an image's id, names and labels, and the configured patterns. Output: whether it is pinned. Next: `inventory`.
Source: the CRI's `pinned` field, which containerd sets for the sandbox image and for images with a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

LABEL = "chronolet/pinned"
CRI_LABEL = "io.cri-containerd.pinned"


def pinned(image_id: str, names: Iterable[str], labels: Mapping[str, str], patterns: Iterable[str]) -> bool:
    """Whether a label pins the image, or a pattern matches its id or a name, with or without tag or digest."""
    if labels.get(LABEL) == "true" or labels.get(CRI_LABEL) == "pinned":
        return True
    known = {image_id, *names, *(_repository(name) for name in names)}
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in known)


def _repository(name: str) -> str:
    """Return the name without digest and tag; a colon before the last slash belongs to a port."""
    head = name.partition("@")[0]
    return head[: head.rindex(":")] if ":" in head.rpartition("/")[2] else head
