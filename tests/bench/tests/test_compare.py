"""A row that got worse is marked but does not fail the run; a missing row does."""

import math
from pathlib import Path

from tests.bench import compare
from tests.bench.compare import Row
from tests.bench.figures import UNMEASURED, Figure


def timed(name: str, ours: float, reference: float | None = None) -> Figure:
    return Figure(name=name, ours=ours, unit="s", reference=reference, reference_name="s by bare calls")


def test_a_row_is_its_ratio_to_bare_calls_or_its_plain_value() -> None:
    found = [
        timed("a", 0.3, 0.25),
        timed("e", 0.7),
        timed("a. the same, the slowest", 2.0, 0.25),
        timed("c. exec, break to new start, p99", 1.1),
        Figure(name="disturbed", ours=0, unit=""),
        Figure(name="a second", ours=20, unit="a second", goal=19, bound="at least"),
    ]
    assert compare.rows(found) == {"a": Row(value=1.2, unit="x bare calls"), "e": Row(value=0.7, unit="s")}


def test_a_fifth_worse_is_marked() -> None:
    now = {"a": Row(value=1.21, unit="s"), "b": Row(value=1.19, unit="s"), "c": Row(value=0.5, unit="s")}
    found = compare.compared(now, dict.fromkeys(now, Row(value=1.0, unit="s")), whole=True)
    assert [(figure.name, figure.met) for figure in found] == [("a", False), ("b", True), ("c", True)]


def test_a_row_without_an_earlier_value_has_no_goal() -> None:
    now = {"new": Row(value=1, unit="s"), "other": Row(value=1, unit="s"), "nothing": Row(value=1, unit="s")}
    last = {"other": Row(value=1, unit="x bare calls"), "nothing": Row(value=0, unit="s")}
    found = compare.compared(now, last, whole=True)
    assert [figure.met for figure in found] == [None, None, None]


def test_a_row_that_never_happened_or_is_missing_is_unmeasured() -> None:
    found = compare.compared({"e": Row(value=math.inf, unit="s")}, {"gone": Row(value=1, unit="s")}, whole=True)
    assert [figure.name for figure in found] == [UNMEASURED, UNMEASURED]
    assert [figure.note.partition(":")[0] for figure in found] == ["e", "gone"]


def test_rows_of_omitted_parts_are_not_missing() -> None:
    assert compare.compared({}, {"gone": Row(value=1, unit="s")}, whole=False) == []


def test_written_rows_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    assert compare.read(path) == {}
    compare.write({"a": Row(value=1.2, unit="s")}, path)
    assert compare.read(path) == {"a": Row(value=1.2, unit="s")}


def test_the_last_figures_can_be_read() -> None:
    assert compare.read()
