"""Selects the entries of the log that explain what happened to one pod. Pure.

Input: entries. Output: `Fact`s, in log order. Next: `lives`, which assembles them.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from chronolet_schemas import devices, image_gc, kernel, kube_events, pleg, registry
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.times import Stamp

E = TypeVar("E", bound=Event)

_OF_THE_NODE = frozenset(
    registry.type_of(one)
    for one in (
        devices.DevicesListed,
        devices.PluginRegistered,
        devices.PluginStopped,
        devices.ResourceRemoved,
        image_gc.ImageRemoved,
        image_gc.ImagesChanged,
        kernel.BallastGivenUp,
        kernel.LogLost,
        pleg.StreamFollowed,
        pleg.StreamLost,
    )
)
"""Events about the whole node that may have led to something in a pod."""
_KUBE_EVENTS = registry.type_of(kube_events.Recorded).partition(".")[0]
_READ = frozenset(("pod", "prober", "pleg", "manifests", "devices", "container_gc"))
"""The kinds with events about single pods. `qos` is left out: the pod records its answers."""


class Fact(NamedTuple):
    """One entry of the log.

    `before` is the time at which the entry before it was written, whatever that was about; 0 if there is none.
    """

    stamp: Stamp
    entity: str
    event: Event
    cause: str = ""
    before: int = 0

    @property
    def at(self) -> int:
        """When the entry was written, in milliseconds since the epoch."""
        return self.stamp.milliseconds

    @property
    def position(self) -> Position:
        return self.stamp.position


def concerns_answer(entry: Entry, name: str) -> bool:
    """Return whether an answer about the pod `name` (namespace/name) may need this entry."""
    if entry.type in _OF_THE_NODE:
        return True
    kind = entry.entity.partition("/")[0]
    if kind not in _READ or entry.type.startswith(_KUBE_EVENTS):
        return False
    own = entry.entity == f"pod/{name}" or entry.entity.startswith(f"prober/{name}/")
    return own or (kind not in ("pod", "prober") and name.encode() in entry.data)
