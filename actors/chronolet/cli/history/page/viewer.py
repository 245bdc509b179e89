"""Understands the entries of a node's log for its page: folds states and formats the rows that they change.

Input: a folding at the page's beginning, entries. Output: what the page shows of each. Next: `history.page.recording`.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.cli.history.log import cause_text, compact, decoded
from chronolet.cli.history.page import subjects
from chronolet.cli.history.page.node import (
    COLLECTOR_KINDS,
    COLLECTORS,
    DEVICES,
    IMAGES,
    NODE,
    PROBES,
    Inventory,
    collector_changed,
    probe_changed,
)
from chronolet.cli.history.page.pods import CONTAINERS, PODS, Pods
from chronolet.cli.printing.table import plain
from chronolet.history.page.viewing import Change, Seen
from chronolet.history.state import Folding, Moment
from chronolet_schemas import codec
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.times import time_of

KINDS = ("pod", "prober", "qos", "pleg", "devices", "image_gc")
"""The kinds whose states the page shows."""
_INVENTORY = frozenset(("qos", "pleg", "devices", "image_gc"))


class NodeViewer:
    """The viewer of a node's log."""

    tables = (NODE, PODS, CONTAINERS, PROBES, DEVICES, IMAGES, COLLECTORS)

    def __init__(self, folding: Folding, node: str, created_at: int) -> None:
        """`folding` has the states of `KINDS` before the first entry. `node`: the node's name; `created_at`: the time
        of the log's first entry in milliseconds, 0 if unknown.
        """
        self._folding = folding
        self._node = node
        self._pods = Pods(node)
        self._inventory = Inventory(node, created_at)

    def begin(self) -> Iterator[Change]:
        """Return the rows of all objects that exist before the first entry."""
        moment = self._moment()
        yield from self._inventory.changed(moment)
        for key in sorted(moment.states["pod"]):
            yield from self._pods.changed(moment, key)
        for key in sorted(moment.states["prober"]):
            yield from probe_changed(moment, key)

    def read(self, entry: Entry) -> Seen:
        """Fold the next entry."""
        self._folding.read((entry,))
        data = decoded(entry)
        words = [entry.subject] if entry.subject else []
        return Seen(
            about=subjects.about(entry, data, self._node),
            severity=subjects.severity(entry, data),
            text=plain(" ".join([*words, compact(data, entry)])),
            changes=self._changes(entry),
            cause=plain(cause_text(entry.cause)),
        )

    def _moment(self) -> Moment:
        """Return the present states. The next entry changes these tables."""
        return Moment(self._folding.at, self._folding.states)

    def _changes(self, entry: Entry) -> Iterator[Change]:
        kind, _, key = entry.entity.partition("/")
        if kind == "pod":
            yield from self._pods.changed(self._moment(), key)
        elif kind == "prober":
            yield from probe_changed(self._moment(), key)
        elif kind in _INVENTORY:
            yield from self._inventory.changed(self._moment())
        if kind in COLLECTOR_KINDS:
            yield from _collector_changes(kind, entry)


def _collector_changes(kind: str, entry: Entry) -> Iterator[Change]:
    try:
        event = codec.decode(entry.type, entry.data, Event)
    except codec.Undecodable:
        return
    yield from collector_changed(kind, event, time_of(entry))
