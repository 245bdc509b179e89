"""Signals from qos's standing effects. Input: none. Output: Signal Structs. Next: `decider`."""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.rules.resources.cgroups import Path
from chronolet_schemas.envelope import Message, Signal
from chronolet_schemas.qos import Change, Node


class NodeSeen(Signal, frozen=True, kw_only=True):
    """The machine has been inspected. `node`: its resources, divided according to the settings."""

    node: Node


class Restored(Message, frozen=True, kw_only=True):
    """A cgroup that had been correct, was changed by someone else and has been restored."""

    path: Path
    changes: tuple[Change, ...]


class Removed(Message, frozen=True, kw_only=True):
    """A removed cgroup that belonged to no pod, with the number of processes killed in it."""

    path: Path
    killed: int = 0


class Failed(Message, frozen=True, kw_only=True):
    """A cgroup that could not be created, changed or removed."""

    path: Path
    error: str


class TreeKept(Signal, frozen=True, kw_only=True):
    """The tree with this `revision` has been reconciled: every cgroup is as desired, except those in `failed`, those
    below them, and the cgroup of a class or of all pods that uses more memory than its desired limit.
    """

    revision: int
    restored: Sequence[Restored] = ()
    removed: Sequence[Removed] = ()
    failed: Sequence[Failed] = ()
