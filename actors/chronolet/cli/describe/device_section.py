"""Formats the page of `describe device`: a device and its history since the start of the log.

Input: a device from `get.devices`, the node's log. Output: lines in kubectl's format. The history results from
comparing the state of `devices` before and after each entry, folded as the actor folds it. Next: `describe`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chronolet.cli.describe.layout import line, moment
from chronolet.cli.get import devices
from chronolet.cli.get.devices import Object
from chronolet.cli.printing import ages, table
from chronolet.devices import capacity
from chronolet.devices.actor import NODE
from chronolet.devices.decider import DECIDER
from chronolet.devices.state import State
from chronolet.history.derived.wanted import Wanted
from chronolet_schemas import codec
from chronolet_schemas.devices import DevicesFreed, DevicesRefused
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.times import time_of

_RESOURCES = ("Resource", "Capacity", "Allocatable", "Allocated", "Plugin", "Since")
_HISTORY = ("Age", "When", "What")
_ENTITY = f"devices/{NODE}"
WANTED = Wanted(entity=lambda name: name == _ENTITY)
"""The entries from which `history` results."""
_UNLISTED = ""


class Moment(NamedTuple):
    """One change of a device. `at`: milliseconds since the epoch."""

    at: int
    what: str


class _View(NamedTuple):
    """Health and holders of a device at one position of the log."""

    health: str
    holders: tuple[str, ...]


def resources(state: State, now: int) -> Iterator[str]:
    """Yield a table of the node's device resources."""
    there, may, held = capacity.capacity(state), capacity.node_allocatable(state), capacity.allocated(state)
    rows = []
    for name in sorted({*there, *may}):
        known = state.resources.get(name)
        plugin = (known.phase, ages.ago(known.since, now)) if known is not None else ("removed", devices.NONE)
        rows.append((name, str(there.get(name, 0)), str(may[name]), str(len(held.get(name, ()))), *plugin))
    yield "Resources:"
    yield from table.lines(_RESOURCES, [["-" * len(name) for name in _RESOURCES], *rows], indent="  ")


def described(device: Object, past: Iterable[Moment], now: int) -> Iterator[str]:
    """Yield the lines that `describe device` prints for a device."""
    yield line("Name", device["id"])
    yield line("Resource", device["resource"])
    yield line("Health", device["health"])
    yield line("NUMA Nodes", ", ".join(str(node) for node in device["numaNodes"]) or devices.NONE)
    yield line("Plugin", f"{device['plugin']['phase']} {device['plugin'].get('socket', '')}".strip())
    if "pod" in device:
        yield line("Pod", f"{device['namespace']}/{device['pod']}")
        yield line("UID", device["uid"])
        yield line("Containers", ", ".join(device["containers"]))
        yield line("Since", moment(device["since"]))
    else:
        yield line("Pod", devices.NONE)
    yield "History:"
    rows = [(ages.ago(one.at, now), ages.local(one.at), one.what) for one in past]
    yield from table.lines(_HISTORY, [["-" * len(name) for name in _HISTORY], *rows], indent="  ")


def history(log: Iterable[Entry], resource: str, device: str) -> Iterator[Moment]:
    """Yield all changes to the device, oldest first."""
    state, before = DECIDER.initial, _View(_UNLISTED, ())
    for entry in log:
        if entry.entity != _ENTITY:
            continue
        try:
            event = codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            continue  # written by a newer release; `log` shows it undecoded
        state = DECIDER.evolve(state, event) or DECIDER.initial
        after = _view(state, resource, device)
        yield from (Moment(time_of(entry), what) for what in _between(before, after, event))
        before = after


def _view(state: State, resource: str, device: str) -> _View:
    known = state.resources.get(resource)
    listed = known.devices.get(device) if known is not None else None
    health = devices.health(known, listed) if listed is not None else _UNLISTED
    claims = (state.claims[key] for key in state.holders(resource).get(device, ()))
    return _View(health, tuple(f"{one.pod} ({one.uid}) container {one.container}" for one in claims))


def _between(before: _View, after: _View, event: Event) -> Iterator[str]:
    if after.health != before.health:
        yield f"health: {after.health}" if after.health else "no longer listed"
    for holder in before.holders:
        if holder not in after.holders:
            yield f"released by {holder}: {_why(event)}"
    for holder in after.holders:
        if holder not in before.holders:
            yield f"allocated to {holder}"


def _why(event: Event) -> str:
    match event:
        case DevicesFreed():
            return event.reason
        case DevicesRefused():
            return event.message
        case _:
            return "its plugin did not allocate it"
