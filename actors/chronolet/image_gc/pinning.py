"""Which images nobody may remove. Pure.

Comes in: an image's names and labels, the setting's patterns. Goes out: yes or no. Next: `inventory`. Source: the CRI's
`pinned` field, which containerd sets for the sandbox image and by a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

LABEL = "chronolet/pinned"
CRI_LABEL = "io.cri-containerd.pinned"


def pinned(image_id: str, names: Iterable[str], labels: Mapping[str, str], patterns: Iterable[str]) -> bool:
    """Whether a label says so, or a pattern matches the id or a name, with its tag or digest or without."""
    if labels.get(LABEL) == "true" or labels.get(CRI_LABEL) == "pinned":
        return True
    known = {image_id, *names, *(_repository(name) for name in names)}
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in known)


def _repository(name: str) -> str:
    """The name without digest and tag; a colon before the last slash is a port's."""
    head = name.partition("@")[0]
    return head[: head.rindex(":")] if ":" in head.rpartition("/")[2] else head
