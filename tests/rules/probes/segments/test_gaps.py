"""Outcomes that no segment has are found, counted and explained; nothing else is."""

from __future__ import annotations

from typing import Any

from chronolet.rules.probes.segments.gaps import Gap, Head, gaps, head_of
from chronolet.rules.probes.segments.recorder import Recorder
from chronolet.rules.probes.segments.segment import Lost
from tests.rules.probes.segments.outcomes import T0, outcome


def head(number: int, **fields: Any) -> Head:
    """Return the head of a minute with ten outcomes."""
    usual: dict[str, Any] = {
        "process": "p",
        "started": T0,
        "number": number,
        "upto": number,
        "begin": T0 + 60_000 * (number - 1),
        "end": T0 + 60_000 * number,
        "before": 10 * (number - 1),
        "outcomes": 10,
        "lost": None,
        "ended": False,
    }
    return Head(**(usual | fields))


def found(*heads: Head, running: bool = False) -> list[Gap]:
    return gaps(heads, lambda *_: running)


def test_no_segments_have_no_gap() -> None:
    assert found() == []


def test_complete_segments_have_no_gap() -> None:
    assert found(head(2, ended=True), head(1)) == []
    assert found(head(1), head(2), running=True) == []
    assert found(head(1, upto=3, outcomes=30), head(4), running=True) == []


def test_a_segment_that_is_read_twice_counts_once() -> None:
    lost = Lost(1, 2, 3)
    twice = head(1, lost=lost)
    assert found(twice, twice, running=True) == [Gap("p", 1, 2, 3, "dropped")]


def test_a_missing_segment_is_counted() -> None:
    assert found(head(1), head(4), running=True) == [Gap("p", T0 + 60_000, T0 + 180_000, 20, "missing")]


def test_older_segments_are_counted() -> None:
    assert found(head(3), running=True) == [Gap("p", T0, T0 + 120_000, 20, "older")]


def test_a_process_that_was_killed_leaves_an_open_gap() -> None:
    assert found(head(1), head(2)) == [Gap("p", T0 + 120_000, None, None, "unwritten")]


def test_processes_of_one_name_are_told_apart() -> None:
    later = head(1, started=T0 + 90_000, begin=T0 + 90_000)
    assert gaps((head(1), later), lambda _, started: started == T0 + 90_000) == [
        Gap("p", T0 + 60_000, None, None, "unwritten")
    ]


def test_gaps_are_in_the_order_of_time() -> None:
    given = (head(1, lost=Lost(T0 + 9, T0 + 9, 1), ended=True), head(1, process="a", lost=Lost(T0 + 5, T0 + 6, 2)))
    assert [(one.process, one.why) for one in found(*given)] == [
        ("a", "dropped"),
        ("p", "dropped"),
        ("a", "unwritten"),
    ]


def test_the_head_of_a_segment_has_its_counts() -> None:
    made = Recorder(T0, 10)
    made.take(outcome(), T0)
    made.take(outcome(), T0)
    made.drop(Lost(1, 2, 3))
    expected = head(1, end=T0 + 60_000, outcomes=2, lost=Lost(1, 2, 3), ended=True)
    assert head_of(made.close("p", T0 + 60_000, ended=True)) == expected
    assert expected.total == 2
