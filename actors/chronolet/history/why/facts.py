"""Selects the entries of the log that explain what happened to one pod. Pure.

Input: entries. Output: `Fact`s, in log order. Next: `lives`, which assembles them.
"""

from __future__ import annotations

from collections import deque
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
        kernel.LogLost,
        pleg.StreamFollowed,
        pleg.StreamLost,
    )
)
"""Events about the whole node that may have led to something in a pod."""
_MOST_TIMES = 10_000
_KUBE_EVENTS = registry.type_of(kube_events.Recorded).partition(".")[0]
_READ = frozenset(("pod", "prober", "pleg", "manifests", "devices", "container_gc"))
"""The kinds with events about single pods. `qos` is left out: the pod records its answers."""


class Fact(NamedTuple):
    """One entry of the log. `actor`: who wrote it, with the epoch: each process that takes over a shard has its own.

    `silent_until`, for a container's death: when the first entry of the log after the death itself was written,
    no matter what that was about; 0 for other facts, and if the death is too long ago to tell.
    """

    stamp: Stamp
    entity: str
    event: Event
    actor: str = ""
    silent_until: int = 0

    @property
    def at(self) -> int:
        """When the entry was written, in milliseconds since the epoch."""
        return self.stamp.milliseconds

    @property
    def position(self) -> Position:
        return self.stamp.position


class Missing(Event, frozen=True, kw_only=True):
    """Stands for entries that could not be read: what they recorded is not known. It is never written to a log."""


class Times:
    """The times of the newest entries of a log, as it is read."""

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=_MOST_TIMES)

    def silent_until(self, event: Event) -> int:
        """Return `Fact.silent_until` for the event of the entry that is read now, whose time is known."""
        if not isinstance(event, pleg.ContainerDied) or not event.finished_at:
            return 0
        if self._times[0] > event.finished_at and len(self._times) == _MOST_TIMES:
            return 0
        return next((at for at in self._times if at > event.finished_at), 0)

    def add(self, milliseconds: int) -> None:
        """Note the time of the entry that is read now."""
        self._times.append(milliseconds)


def concerns_answer(entry: Entry, name: str) -> bool:
    """Return whether an answer about the pod `name` (namespace/name) may need this entry."""
    if entry.type in _OF_THE_NODE:
        return True
    kind = entry.entity.partition("/")[0]
    if kind not in _READ or entry.type.startswith(_KUBE_EVENTS):
        return False
    own = entry.entity == f"pod/{name}" or entry.entity.startswith(f"prober/{name}/")
    return own or (kind not in ("pod", "prober") and name.encode() in entry.data)
