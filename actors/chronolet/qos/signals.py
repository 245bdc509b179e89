"""What qos' standing effects find. Comes in: nothing. Goes out: Signal Structs. Next: `decider`."""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.rules.resources.cgroups import Path
from chronolet_schemas.envelope import Message, Signal
from chronolet_schemas.qos import Change, Node


class NodeSeen(Signal, frozen=True, kw_only=True):
    """What the machine has, and what the settings make of it."""

    node: Node


class Restored(Message, frozen=True, kw_only=True):
    """A cgroup that had been right and was not any more."""

    path: Path
    changes: tuple[Change, ...]


class Removed(Message, frozen=True, kw_only=True):
    """A cgroup of no pod, with the number of processes that were killed in it."""

    path: Path
    killed: int = 0


class Failed(Message, frozen=True, kw_only=True):
    """A cgroup that could not be made, changed or removed."""

    path: Path
    error: str


class TreeKept(Signal, frozen=True, kw_only=True):
    """The tree of `revision` was gone through: all is as it should be, except what `failed`."""

    revision: int
    restored: Sequence[Restored] = ()
    removed: Sequence[Removed] = ()
    failed: Sequence[Failed] = ()
