"""Derives what happened to a container from its old and new state. Pure.

Input: the old and the new state. Output: the transitions between them, in order. Next: `changes` turns them into
events. Source: pkg/kubelet/pleg/generic.go (generateEvents, convertState), where `created` counts as unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Phase = Literal["created", "running", "exited", "unknown", "absent"]
Happened = Literal["started", "died", "removed", "changed"]


def computed(old: Phase, new: Phase) -> Sequence[Happened]:
    """Return every transition from `old` to `new`. A container that vanished while it may have been running counts as
    having died first.
    """
    if _normalized(old) == _normalized(new):
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


def _normalized(state: Phase) -> Phase:
    return "unknown" if state == "created" else state
