"""A recorded history as test data: folds it with the code of this release.

Input: an exported history. Output: its events, and the states and objects of any moment in it. Next: `plugin`, which
gives it to tests.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, overload

from chronolet.cli.get import devices, images
from chronolet.cli.services import readable_kinds
from chronolet.history import when
from chronolet.history.entries import NoArchive
from chronolet.history.state import Moment, state_at
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.node.http import api_node, api_pods
from chronolet.testing.exported import HistoryError, entries_of
from chronolet_schemas import codec, kernel
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.times import time_of

Object = dict[str, Any]
E = TypeVar("E", bound=Event)


class Happened(NamedTuple):
    """An event of the history: its position, when it was written (milliseconds since the epoch), the entity that it
    belongs to, such as `pod/default/web`, and the event itself, in the form of this release.
    """

    position: Position
    milliseconds: int
    entity: str
    event: Any


class View:
    """The node at one moment of a history. Objects are those that `get -o json --at` prints."""

    def __init__(self, store: MemoryStore, node: str, at: when.Located) -> None:
        self._store = store
        self._node = node
        self._states: dict[str, Mapping[str, Any]] = {}
        """The states by kind: each is folded once."""
        self.position = at.position
        """The position of the last entry up to the moment."""
        self.milliseconds = at.milliseconds
        """The moment's time, in milliseconds since the epoch."""

    def states(self, kind: str) -> Mapping[str, Any]:
        """Return the states of an actor kind, such as `prober`, by the keys of its entities. These are classes of
        `chronolet.<kind>.state`, which may change from release to release.
        """
        return self._moment(kind).states[kind]

    @functools.cached_property
    def pods(self) -> Mapping[str, Object]:
        """The pods with their status, by namespace/name."""
        found = api_pods.api_pods(self._moment("pod", "devices"), self._node)
        return {f"{one['metadata']['namespace']}/{one['metadata']['name']}": one for one in found}

    def pod(self, name: str) -> Object:
        """Return the pod `name`, in the namespace `default`, or `namespace/name`. Raises KeyError, which names the pods
        that there are.
        """
        key = name if "/" in name else f"default/{name}"
        if key not in self.pods:
            raise KeyError(f"no pod {key} at {self.position}: found {', '.join(self.pods) or 'none'}")
        return self.pods[key]

    @functools.cached_property
    def devices(self) -> Sequence[Object]:
        """The devices of plugins, with their health and holders."""
        return devices.of(devices.state_of(self._moment("devices")))

    @functools.cached_property
    def images(self) -> Sequence[Object]:
        """The images on the node."""
        return images.of(images.state_of(self._moment("image_gc")))

    @functools.cached_property
    def node(self) -> Object:
        """The node."""
        return api_node.api_node(api_node.facts(self._moment("qos", "pleg", "devices"), None, 0), self._node)

    def _moment(self, *kinds: str) -> Moment:
        missing = [kind for kind in kinds if kind not in self._states]
        if missing:
            self._states |= state_at(self._store, NoArchive(), readable_kinds(missing), self.position).states
        return Moment(self.position, {kind: self._states[kind] for kind in kinds})


class History:
    """A recorded history, from the first entry of its log on."""

    def __init__(self, entries: Sequence[Entry], name: str = "history") -> None:
        """`name` stands for the history in errors. Raises HistoryError if the first entry does not begin a log."""
        self.entries = entries
        began = self._decoded(entries[0])
        if not isinstance(began, kernel.LogStarted):
            raise HistoryError(f"{name}: found {entries[0].type} as the first entry, expected kernel.LogStarted@1")
        self.node = began.node
        """The name of the node."""
        self.end = max(map(time_of, entries))
        """The time of the last entry, in milliseconds since the epoch."""
        server = MemoryServer()
        server.run, server.counts = began.run, dict(began.shards)
        server.log, server.last = list(entries), entries[-1].position
        self._store = MemoryStore(server)

    @classmethod
    def read(cls, file: Path | str) -> Self:
        """Read an exported history: the output of `chronolet log -o json`, an archive file, or a folder of such files.

        Raises HistoryError or OSError.
        """
        path = Path(file)
        return cls(entries_of(path), str(path))

    def at(self, moment: str | int | Position) -> View:
        """Return the node at a moment: as for `--at` (`2026-11-21T03:00:00Z`, `#4711`; `-15m` counts from the end of
        the history), a time in milliseconds since the epoch, or a position. Raises MomentError if there is none.
        """
        named: when.When
        match moment:
            case str():
                named = when.parsed(moment, self.end)
            case Position():
                named = moment
            case int():
                named = when.Time(moment)
        return View(self._store, self.node, when.located(self._store, NoArchive(), named, self.end))

    @overload
    def events(self) -> list[Happened]: ...
    @overload
    def events(self, *types: type[E]) -> list[Happened]: ...
    def events(self, *types: type[Event]) -> list[Happened]:
        """Return the events of these classes of `chronolet_schemas` (none: all), in order. Entries that this release
        cannot decode, and those of other programs, are left out.
        """
        decoded = ((entry, self._decoded(entry)) for entry in self.entries)
        return [
            Happened(entry.position, time_of(entry), entry.entity, event)
            for entry, event in decoded
            if event is not None and (not types or isinstance(event, types))
        ]

    @staticmethod
    def _decoded(entry: Entry) -> Event | None:
        try:
            return codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            return None
