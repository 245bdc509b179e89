"""Late probes, and what delayed them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.support.pod_start import Started, result
from tests.cli.support.written_node import NOON
from tests.history.culprits.lines import first_line


def test_a_probe_delayed_by_a_stall(start: Started) -> None:
    start.whole()
    start.probing()
    start.node.results = [
        result(at=NOON + 9_000, late=0.4),
        result(at=NOON + 5_000, late=2_300.0, stalled=2_100.0),
        result(at=NOON + 4_000, late=9_000.0, uid="another"),
        result(at=NOON - 4_000, late=9_000.0),
    ]
    assert first_line(start) == (
        "default/web: the liveness probe of container app began 2.300 s late: agent or machine stalled for 2.100 s"
    )


def test_a_probe_delayed_by_others(start: Started) -> None:
    start.whole()
    start.probing()
    start.node.results = [
        result(at=NOON + 20_000, name="default/after", uid="a", took=9_000.0),
        result(at=NOON + 9_000, late=4_000.0),
        result(at=NOON + 4_500, name="default/hog", uid="h", took=4_200.0),
        result(at=NOON + 4_600, name="default/pig", uid="p", took=900.0),
        result(at=NOON + 1_000, name="default/before", uid="b", took=900.0),
    ]
    assert first_line(start) == (
        "default/web: the liveness probe of container app began 4.000 s late: 2 other probes were running meanwhile, "
        "default/hog: the liveness probe of container app for 4.200 s"
    )


@pytest.mark.parametrize(
    ("agent", "why"),
    [(0, "other probes were running"), (6_000, "agent or machine stalled for 6.000 s")],
)
def test_a_late_probe_that_only_the_log_knows(start: Started, agent: int, why: str) -> None:
    start.whole()
    start.probing()
    start.delayed(7_000, agent)
    assert first_line(start) == f"default/web: the liveness probe of container app began 7.000 s late: {why}"


def test_rounding_in_the_log_does_not_count_the_probe_itself(start: Started) -> None:
    start.whole()
    start.probing()
    start.node.results = [
        result(at=NOON + 9_000, late=4_000.6),
        result(at=NOON + 4_500, name="default/hog", uid="h", took=4_200.0),
    ]
    start.delayed(4_001)
    assert "1 other probe was running meanwhile, default/hog" in first_line(start)


def test_a_slow_start_and_a_late_probe_are_both_named(start: Started) -> None:
    start.sandbox()
    start.image(pulled_for=11_700)
    start.container()
    start.probing()
    start.node.results = [result(at=NOON + 20_000, late=2_300.0, stalled=2_100.0)]
    line = first_line(start)
    assert line.startswith("default/web took 12.006 s to start, 11.705 s of it (97 %) getting image busybox:1")
    assert "; default/web: the liveness probe of container app began 2.300 s late: agent or machine" in line


@pytest.mark.parametrize("garbage", ["", "soon"])
def test_unreadable_results_are_skipped(start: Started, garbage: str) -> None:
    start.whole()
    start.probing()
    bad = result(at=NOON + 1, late=5_000.0)
    start.node.results = [type(bad)(**{**_fields(bad), "late_milliseconds": garbage})]
    assert first_line(start).startswith("default/web took 0.306 s to start")


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}
