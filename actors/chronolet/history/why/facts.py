"""Selects the entries of the log that explain what happened to one pod. Pure.

Input: entries. Output: `Fact`s, in log order. Next: `lives`, which assembles them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from chronolet.history.derived.wanted import UNREADABLE, Wanted
from chronolet_schemas import codec, devices, image_gc, kernel, kube_events, pleg, registry
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
_KUBE_EVENTS = registry.type_of(kube_events.Recorded).partition(".")[0]
_OF_ALL = frozenset(("pleg", "manifests", "devices", "container_gc"))
"""The kinds with events about single pods whose entities belong to all pods. `qos` is left out: the pod records its
answers."""

WrittenAfter = Callable[[int, Position], int]
"""Returns when the first entry of the log after a time was written, up to an entry, whatever it is about; 0 if there is
none, or that is not known. Times are in milliseconds since the epoch."""


class Fact(NamedTuple):
    """One entry of the log. `actor`: who wrote it, with the epoch: each process that takes over a shard has its own."""

    stamp: Stamp
    entity: str
    event: Event
    actor: str = ""

    @property
    def at(self) -> int:
        """When the entry was written, in milliseconds since the epoch."""
        return self.stamp.milliseconds

    @property
    def position(self) -> Position:
        return self.stamp.position


class Missing(Event, frozen=True, kw_only=True):
    """Stands for entries that could not be read: what they recorded is not known. It is never written to a log."""


def never_written(_milliseconds: int, _upto: Position) -> int:
    """Stand for a log whose other entries are not known: see WrittenAfter."""
    return 0


def written_after(stamps: Iterable[Stamp], milliseconds: int, upto: Position) -> int:
    """Return what WrittenAfter does, from the stamps of entries in log order; those from before the time may be left
    out.
    """
    first = next((one for one in stamps if one.milliseconds > milliseconds), None)
    return first.milliseconds if first is not None and first.position <= upto else 0


def wanted(name: str) -> Wanted:
    """Return conditions that hold for all entries that an answer about the pod `name` (namespace/name) may need."""
    return Wanted(
        alternatives=(
            Wanted(type=lambda type_: type_ in _OF_THE_NODE),
            Wanted(entity=lambda entity: _is_own(entity, name)),
            # What cannot be decoded may be about the pod.
            Wanted(
                entity=_is_of_all,
                alternatives=(
                    Wanted(pod=name),
                    Wanted(pod=UNREADABLE),
                    Wanted(type=lambda type_: not codec.is_known(type_)),
                ),
            ),
        )
    )


def concerns_answer(entry: Entry, name: str) -> bool:
    """Return whether an answer about the pod `name` (namespace/name) may need this entry."""
    if entry.type in _OF_THE_NODE:
        return True
    if entry.type.startswith(_KUBE_EVENTS):
        return False
    return _is_own(entry.entity, name) or (_is_of_all(entry.entity) and name.encode() in entry.data)


def _is_own(entity: str, name: str) -> bool:
    return entity == f"pod/{name}" or entity.startswith(f"prober/{name}/")


def _is_of_all(entity: str) -> bool:
    return entity.partition("/")[0] in _OF_ALL
