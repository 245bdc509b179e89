"""Finds out from a log with which settings a process made decisions. Pure.

Input: the events of processes. Output: the kinds with which a process decided. Next: `redeciding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chronolet.kernel.kind import Kind
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Entry, Event

KindsOf = Callable[[kernel.ProcessStarted], Iterable[Kind[Any]]]
"""Returns the kinds as a process with this description decides. Raises ValueError if its settings cannot be read."""

_STARTED = registry.type_of(kernel.ProcessStarted)


class DecidingProcesses:
    """The kinds as each process decides, as far as the log has been read."""

    def __init__(self, kinds: Iterable[Kind[Any]], kinds_of: KindsOf | None = None) -> None:
        """`kinds`: as decided by a process that the log does not describe; without `kinds_of`, by all."""
        self._usual = {kind.name: kind for kind in kinds}
        self._kinds_of = kinds_of
        self._by_settings: dict[str, Mapping[str, Kind[Any]]] = {}
        self._by_process: dict[str, Mapping[str, Kind[Any]]] = {}

    def add(self, entry: Entry) -> None:
        """Take note of an entry, if it describes a process. Raises ValueError and codec.Undecodable."""
        if entry.type != _STARTED or self._kinds_of is None:
            return
        process = codec.decode(entry.type, entry.data, Event)
        assert isinstance(process, kernel.ProcessStarted)  # noqa: S101 - for the type checker
        described = f"{process.settings_digest} {process.architecture}"
        if described not in self._by_settings:
            self._by_settings[described] = {kind.name: kind for kind in self._kinds_of(process)}
        self._by_process[process.process] = self._by_settings[described]

    def kind(self, process: str, name: str) -> Kind[Any]:
        """Return a kind as this process decides."""
        return self._by_process.get(process, self._usual).get(name) or self._usual[name]
