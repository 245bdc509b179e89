"""Rows of the node, its probes, devices, images and collectors.

Input: states of kinds, and events of the collectors. Output: changes of rows. Next: `viewer`.

The node, devices and images are in the format of `get`; for probes and collectors, `get` has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chronolet.cli.describe.probe_section import result_text
from chronolet.cli.get import devices, images, nodes
from chronolet.cli.history.page.cells import cells
from chronolet.cli.printing.ages import LATER, ago
from chronolet.history.page.viewing import Change, Look, Object, Row, Table
from chronolet.history.state import Moment
from chronolet.image_gc.state import State as ImageState
from chronolet.node.http import api_node
from chronolet.prober.state import State as Probe
from chronolet_schemas import container_gc, image_gc
from chronolet_schemas.devices import UNHEALTHY
from chronolet_schemas.envelope import Event

NODE = Table("node", "Node", tuple(nodes.head(wide=True, labelled=False)))
PROBES = Table(
    "probe", "Probes", ("NAMESPACE", "POD", "CONTAINER", "PROBE", "RESULT", "LAST", "CODE", "OUTPUT"), "container"
)
DEVICES = Table("device", "Devices", tuple(devices.head(wide=True)))
IMAGES = Table("image", "Images", images.HEAD)
COLLECTORS = Table("gc", "Garbage collection", ("COLLECTOR", "STATE", "RUN", "TRIGGER", "SINCE", "RESULT"))

COLLECTOR_KINDS = frozenset(("container_gc", "image_gc"))
_PROBE_LOOKS = {"success": Look.GOOD, "failure": Look.BAD, "unknown": Look.WAITING}

LONGEST_OUTPUT = 200
"""The number of characters that a page shows of a probe's output. A browser must hold all different outputs at once,
and an output may have 10 KiB.
"""


def probe_changed(moment: Moment, key: str) -> Iterator[Change]:
    """Return the row of the probe `namespace/pod/container/PROBE`. `moment` includes the probe's state."""
    state: Probe | None = moment.states["prober"].get(key)
    row = None if state is None or not state.uid else _probe_row(state)
    yield Change(Object(PROBES.name, key), row)


def _probe_row(state: Probe) -> Row:
    namespace, _, pod = state.pod.partition("/")
    code = "" if state.code is None else str(state.code)
    last = ago(state.at, LATER) if state.at else "<none>"
    output = state.output.strip()
    if len(output) > LONGEST_OUTPUT:
        output = f"{output[:LONGEST_OUTPUT]}..."
    row = (namespace, pod, state.container, state.probe, result_text(state), last, code, output)
    return Row(cells(row), _PROBE_LOOKS.get(state.result, Look.WAITING) if state.running else Look.IDLE)


class Inventory:
    """Rows of the objects whose kinds have a single state, whichever object an event is about. Only the rows of states
    that have changed are formatted.
    """

    def __init__(self, node: str, created_at: int) -> None:
        """`created_at`: the time of the log's first entry in milliseconds, 0 if unknown."""
        self._node = node
        self._created_at = created_at
        self._seen: dict[str, tuple[Any, ...]] = {}
        """The parts of the states from which the rows of each table were last formatted."""
        self._known: dict[str, frozenset[Object]] = {}

    def changed(self, moment: Moment) -> Iterator[Change]:
        """Return the rows of all objects of the tables whose states have changed."""
        plugins, images_ = devices.state_of(moment), images.state_of(moment)
        facts = api_node.facts(moment, None, 0)
        kills = facts.pleg.probe_kills
        yield from self._rows(NODE, (facts.qos.node, kills, plugins.resources), lambda: self._node_rows(moment))
        yield from self._rows(
            DEVICES, (plugins.resources, plugins.claims, plugins.used), lambda: _device_rows(devices.of(plugins))
        )
        yield from self._rows(IMAGES, (images_.records,), lambda: _image_rows(images_))

    def _rows(
        self, table: Table, sources: tuple[Any, ...], rows: Callable[[], Mapping[Object, Row]]
    ) -> Iterator[Change]:
        before = self._seen.get(table.name)
        if before is not None and all(one is other for one, other in zip(before, sources, strict=True)):
            return
        self._seen[table.name] = sources
        found = rows()
        yield from (Change(gone, None) for gone in self._known.get(table.name, frozenset()) - found.keys())
        yield from (Change(about, row) for about, row in found.items())
        self._known[table.name] = frozenset(found)

    def _node_rows(self, moment: Moment) -> Mapping[Object, Row]:
        facts = api_node.facts(moment, None, 0)
        one = api_node.api_node(facts, self._node, self._created_at)
        held_back = bool(facts.pleg.probe_kills.since)
        row = nodes.row(one, LATER, wide=True, labelled=False)
        return {Object(NODE.name, self._node): Row(cells(row), Look.BAD if held_back else Look.GOOD)}


def _device_rows(found: list[dict[str, Any]]) -> Mapping[Object, Row]:
    return {
        Object(DEVICES.name, devices.name_of(one)): Row(
            cells(devices.row(one, LATER, wide=True)), _device_look(one), rank
        )
        for rank, one in enumerate(found)
    }


def _device_look(device: dict[str, Any]) -> Look:
    if device["health"] in (UNHEALTHY, devices.GONE):
        return Look.BAD
    if device["health"] == devices.UNKNOWN:
        return Look.WAITING
    return Look.GOOD if "pod" in device else Look.IDLE


def _image_rows(state: ImageState) -> Mapping[Object, Row]:
    """An image's rank is its first detection, in milliseconds, as in `get images`: its place in that list would change
    the rows of all later images whenever one is removed.
    """
    return {
        Object(IMAGES.name, one["id"]): Row(
            cells(images.row(one, LATER)),
            Look.GOOD if one["inUse"] else Look.IDLE,
            state.records[one["id"]].first_detected,
        )
        for one in images.of(state)
    }


def collector_changed(name: str, event: Event, now: int) -> Iterator[Change]:
    """Return the row of the collector of this name if the event begins or ends one of its runs. `now`: the event's time
    in milliseconds.
    """
    about = Object(COLLECTORS.name, name)
    match event:
        case image_gc.RunStarted(candidates=planned) | container_gc.RunStarted(victims=planned):
            row = (name, "running", str(event.run), event.trigger, ago(now, LATER), f"{len(planned)} to remove")
            yield Change(about, Row(cells(row), Look.GOOD))
        case image_gc.RunFinished():
            done = f"removed {event.removed}, freed {images.size(event.freed_bytes)}, failed {event.failed}"
            yield Change(about, _ended(name, event, done, now))
        case container_gc.RunFinished():
            yield Change(about, _ended(name, event, "finished", now))
        case _:
            return


def _ended(name: str, event: image_gc.RunFinished | container_gc.RunFinished, done: str, now: int) -> Row:
    row = (name, "idle", str(event.run), event.trigger, ago(now, LATER), event.error or done)
    return Row(cells(row), Look.BAD if event.error else Look.IDLE)
