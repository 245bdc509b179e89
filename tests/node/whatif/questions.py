"""Asks what-if questions about recorded nodes, and says in the same words what a node did.

Input: a `RecordedNode`, `NAME=VALUE`. Output: lines of the answer; lines of a live run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chronolet.history.whatif.two_runs import TwoRuns
from chronolet.kernel.kind import Kind
from chronolet.node.settings.plain import read_settings
from chronolet.node.settings.policies import deciding
from chronolet.node.settings.settings import Settings
from chronolet.node.whatif.change import NodeChange
from chronolet.node.whatif.result import Count, Result, Row, happening
from chronolet.node.whatif.wanted import wanted
from chronolet_schemas import codec, kernel
from chronolet_schemas.envelope import START, Event, Position
from chronolet_schemas.podspec import Pod
from tests.support.recorded_node import NODE, RecordedNode

USUAL = Settings(node=NODE, root_dir=Path("/r"))


class Answer(NamedTuple):
    rows: Sequence[Row]
    counts: Sequence[Count]
    runs: TwoRuns
    unknown: Sequence[str]

    @property
    def exact(self) -> list[str]:
        """What the answer says exactly of the changed run. Checks that nothing is exact after an estimate."""
        certainties = [row.certainty for row in self.rows]
        assert certainties == sorted(certainties, key=("exact", "estimate").index)
        return [row.changed for row in self.rows if row.changed and row.certainty == "exact"]

    @property
    def changed(self) -> list[str]:
        return [row.changed for row in self.rows if row.changed]

    def counted(self, what: str) -> tuple[int, int]:
        """Return how often something happened in the record and with the change."""
        found = [one for one in self.counts if one.what == what]
        return sum(one.recorded for one in found), sum(one.changed for one in found)


def ask(
    node: RecordedNode,
    *changes: str,
    manifests: Mapping[str, Pod] | None = None,
    after: Position = START,
    check: bool = True,
) -> Answer:
    """Ask what would have happened. `check`: whether the change must apply to something."""
    change = NodeChange(wanted(changes, "default", manifests or {}), USUAL, "x86_64")
    runs = TwoRuns(change, deciding(USUAL, "x86_64"), _deciding, after)
    result = Result()
    for entry in node.server.log:
        for step in runs.add(entry):
            result.add(step)
    for step in runs.end(node.now):
        result.add(step)
    if check:
        change.check()
    return Answer(result.rows(), result.counts(), runs, [*runs.unknown(), *change.unknown])


def lived(node: RecordedNode) -> list[str]:
    """Return what happened on a node."""
    events: list[Any] = [codec.decode(entry.type, entry.data, Event) for entry in node.server.log]
    found = [happening(event) for event in events]
    return [one.text for one in found if one is not None]


def _deciding(process: kernel.ProcessStarted) -> Sequence[Kind[Any]]:
    return deciding(read_settings(process.settings), process.architecture)
