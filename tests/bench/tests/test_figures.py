"""Goals in the tables: a missed goal must stay visible."""

import math

import msgspec

from tests.bench.figures import Figure, as_json, interleaved, table


def figure(**fields: object) -> Figure:
    return Figure(**({"name": "speed", "ours": 3.0, "unit": "/s"} | fields))  # type: ignore[arg-type]


def test_a_goal_bounds_the_ratio_to_a_reference() -> None:
    assert figure(reference=4.0, goal=0.7, bound="at least").met
    assert not figure(reference=4.0, goal=0.8, bound="at least").met
    assert figure(reference=4.0, goal=0.8).met
    assert not figure(reference=4.0, goal=0.7).met


def test_a_goal_bounds_the_figure_itself_without_a_reference() -> None:
    assert figure(goal=3.0).met
    assert not figure(goal=2.9).met


def test_a_figure_without_a_goal_is_neither_met_nor_missed() -> None:
    assert figure().met is None
    assert "NO" not in table([figure()])


def test_a_missed_goal_stays_in_the_table_and_in_the_json() -> None:
    missed = figure(goal=1.0, note="why")
    heading, _, row, *notes = table([missed]).splitlines()
    assert heading.split() == ["figure", "ours", "reference", "ratio", "goal", "met"]
    assert row.split() == ["speed", "3.00", "/s", "-", "-", "<=", "1", "NO"]
    assert notes == ["", "* speed: why"]
    assert msgspec.json.decode(as_json({"engine": [missed]}))["engine"][0]["met"] is False


def test_a_figure_that_never_happened_misses_its_goal() -> None:
    never = figure(ours=math.inf, goal=1.0)
    assert never.row()[-1] == "NO"
    decoded = msgspec.json.decode(as_json({"pods": [never]}))["pods"][0]
    assert decoded["ours"] is None
    assert decoded["met"] is False


def test_interleaved_cases_give_their_medians() -> None:
    calls: list[str] = []
    values = {"a": iter([1.0, 9.0, 2.0]), "b": iter([5.0, 5.0, 6.0])}

    def case(name: str) -> float:
        calls.append(name)
        return next(values[name])

    assert interleaved({"a": lambda: case("a"), "b": lambda: case("b")}, 3) == {"a": 2.0, "b": 5.0}
    assert sorted(calls[0:2]) == sorted(calls[2:4]) == sorted(calls[4:6]) == ["a", "b"]


def test_an_absolute_goal_bounds_the_figure_despite_its_reference() -> None:
    met = figure(reference=1.0, goal=3.0, absolute=True)
    assert met.met
    assert met.row()[3] == "3.00"
    assert met.plain()["absolute"] is True
    assert not figure(reference=6.0, goal=2.9, absolute=True).met
    assert "absolute" not in figure(reference=1.0).plain()
