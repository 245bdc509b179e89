"""What it means that a container is found in another state than before. Pure.

Comes in: the old and the new state. Goes out: words for what happened, in their order. Next: `decider` makes events of
them. Source: pkg/kubelet/pleg/generic.go (generateEvents, convertState), where `created` counts as unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Seen = Literal["created", "running", "exited", "unknown", "absent"]
Happened = Literal["started", "died", "removed", "changed"]


def computed(old: Seen, new: Seen) -> Sequence[Happened]:
    """All that happened between the two; a container that vanished while it might have been running died first."""
    if _known(old) == _known(new):
        return ()
    match new:
        case "running":
            return ("started",)
        case "exited":
            return ("died",)
        case "absent":
            return ("removed",) if old == "exited" else ("died", "removed")
        case _:
            return ("changed",)


def _known(state: Seen) -> Seen:
    return "unknown" if state == "created" else state
