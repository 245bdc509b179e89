"""Drawing rows of spans and marks: characters, axis, legend, widths."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.cli.printing import axis
from chronolet.cli.printing.axis import HOUR, MINUTE, SECOND
from chronolet.cli.timeline.chart import CONDITIONS, MARKS, Style, chart
from chronolet.cli.timeline.spans import Mark, Row, Span

BEGIN = 1_800_000_000_000
"""2027-01-15T08:00:00Z."""


def label(at: int, step: int) -> str:
    minutes, seconds = divmod(at // SECOND, 60)
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}" + (f":{seconds:02}" if step < MINUTE else "")


ASCII = Style(ascii=True, paint=lambda text, _: text, label=label, offset=0)
UNICODE = ASCII._replace(ascii=False)
COLOURED = ASCII._replace(paint=lambda text, colour: f"<{colour}:{text}>")


def row(*spans: Span, marks: Sequence[Mark] = (), pod: str = "default/web", container: str = "app") -> Row:
    return Row(pod, container, "app", spans, tuple(marks))


def drawn(one: Row, hours: float = 1, width: int = 79, style: Style = ASCII) -> str:
    """Return the characters of a row, 60 of them if the width is 79."""
    return list(chart([one], BEGIN, BEGIN + round(hours * HOUR), width, style))[1][9:69].rstrip()


def minutes(condition: str, begin: float, end: float) -> Span:
    return Span(condition, BEGIN + round(begin * MINUTE), BEGIN + round(end * MINUTE))  # type: ignore[arg-type]


def mark(what: str, at: float) -> Mark:
    return Mark(what, BEGIN + round(at * MINUTE), "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spans", "marks", "expected"),
    [
        ([], [], ""),
        ([minutes("ready", 0, 60)], [], "=" * 60),
        ([minutes("ready", 10, 20)], [], " " * 10 + "=" * 10),
        ([minutes("starting", 0, 1), minutes("running", 1, 3), minutes("ready", 3, 5)], [], ":--=="),
        ([minutes("ready", 0, 2.5), minutes("backing_off", 2.5, 4)], [], "==.."),
        ([minutes("ready", 0, 2.2), minutes("failed", 2.2, 2.3), minutes("ready", 2.3, 4)], [], "==~="),
        ([minutes("ready", 0, 3), minutes("completed", 3, 5)], [], "===__"),
        ([minutes("ready", 0, 5)], [mark("restart", 2)], "==R=="),
        ([minutes("ready", 0, 5)], [mark("restart", 2), mark("oom", 2.5), mark("error", 2.9)], "==O=="),
        ([minutes("ready", 0, 5)], [mark("probe_failed", 1), mark("probe_unjudged", 3.5)], "=!=?="),
        ([minutes("ready", 0, 60)], [mark("error", 60)], "=" * 59 + "E"),
        ([minutes("ready", 58, 60)], [mark("error", 61), mark("error", -1)], " " * 58 + "=="),
        ([minutes("ready", 5, 3)], [], " " * 5 + "="),  # the clock was set back
        ([minutes("ready", 2, 2)], [], "  ="),
    ],
)
def test_each_character_shows_the_worst_of_its_time(
    spans: Sequence[Span], marks: Sequence[Mark], expected: str
) -> None:
    assert drawn(row(*spans, marks=marks)) == expected


def test_a_chart_has_an_axis_a_line_per_container_and_a_legend() -> None:
    rows = [
        row(minutes("starting", 0, 2), minutes("ready", 2, 60), marks=[mark("restart", 30), mark("restart", 45)]),
        row(minutes("backing_off", 10, 60), pod="data/db", container="server"),
    ]
    assert list(chart(rows, BEGIN, BEGIN + HOUR, 60, UNICODE)) == [
        "                08:00   08:15    08:30   08:45      RESTARTS",
        "web/app         ░░███████████████R███████R████████  2",
        "data/db/server       ·····························",
        "",
        "· backing off  ░ starting  █ ready  R restarted",
    ]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (0.01, ["08:00:00", "08:00:10", "08:00:20", "08:00:30"]),
        (0.25, ["08:00", "08:02", "08:04", "08:06", "08:08", "08:10", "08:12"]),
        (1, ["08:00", "08:10", "08:20", "08:30", "08:40", "08:50"]),
        (10, ["08:00", "10:00", "12:00", "14:00", "16:00"]),
        (24, ["12:00", "18:00", "00:00", "06:00"]),
    ],
)
def test_labels_are_at_round_times(hours: float, expected: list[str]) -> None:
    head = next(chart([row()], BEGIN, BEGIN + round(hours * HOUR), 79, ASCII))
    assert head.split() == [*expected, "RESTARTS"]


def test_labels_are_round_in_the_local_time_zone() -> None:
    head = next(chart([row()], BEGIN, BEGIN + HOUR, 79, ASCII._replace(offset=5 * MINUTE)))
    assert head.split()[:3] == ["08:05", "08:15", "08:25"]


def test_labels_over_several_days_have_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    style = ASCII._replace(label=axis.label)
    for days, expected in (
        (2, ["12:00", "01-16", "12:00", "01-17"]),
        (14, ["01-16", "01-18", "01-20", "01-22", "01-24", "01-26"]),
    ):
        head = next(chart([row()], BEGIN, BEGIN + days * 24 * HOUR, 79, style))
        assert head.split()[:-1][: len(expected)] == expected
    assert axis.label(BEGIN + 16 * HOUR, SECOND) == "00:00:00"


def test_colours_are_those_of_the_signs() -> None:
    [_, line, _, legend] = chart(
        [row(minutes("ready", 0, 60), marks=[mark("oom", 30)])], BEGIN, BEGIN + HOUR, 79, COLOURED
    )
    assert line == f"web/app  <green:{'=' * 30}><bright_red:O><green:{'=' * 29}>"
    assert legend == "<green:=> ready  <bright_red:O> killed for lack of memory"


@pytest.mark.parametrize(
    ("pod", "container", "expected"),
    [
        ("default/web", "app", "web/app"),
        ("default/frontend-deployment-one", "app", "fronten..ent-one/app"),
        ("default/frontend-deployment-two", "app", "fronten..ent-two/app"),
        ("default/web-with-a-long-name", "init-container", "web-with-..container"),
    ],
)
def test_long_labels_keep_the_container_and_the_end_of_the_pod(pod: str, container: str, expected: str) -> None:
    line = list(chart([row(minutes("ready", 0, 60), pod=pod, container=container)], BEGIN, BEGIN + HOUR, 60, ASCII))[1]
    assert line.split()[0] == expected
    assert len(expected) <= 20


def test_signs_are_distinct_and_the_replacements_are_ascii() -> None:
    signs = [*CONDITIONS.values(), *MARKS.values()]
    assert len({one.character for one in signs}) == len({one.ascii for one in signs}) == len(signs)
    assert all(one.ascii.isascii() and len(one.ascii) == len(one.character) == 1 for one in signs)


SPANS = st.builds(minutes, st.sampled_from(sorted(CONDITIONS)), st.floats(-10, 70), st.floats(-10, 70))
LABELS = st.text("abc-é\x1b", min_size=1, max_size=80)
ROWS = st.builds(lambda spans, pod, name: row(*spans, pod=pod, container=name), st.lists(SPANS), LABELS, LABELS)


@given(st.lists(ROWS, min_size=1, max_size=5), st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal_or_controls_it(rows: list[Row], width: int) -> None:
    lines = list(chart(rows, BEGIN, BEGIN + HOUR, width, UNICODE))
    assert len(lines) >= len(rows) + 2
    assert max(map(len, lines)) <= width
    assert not any("\x1b" in line for line in lines)


def test_a_terminal_that_is_too_narrow_still_shows_something() -> None:
    assert "=" in "".join(chart([row(minutes("ready", 0, 60))], BEGIN, BEGIN + HOUR, 5, ASCII))


def test_a_moment_is_a_range_of_one_character() -> None:
    assert drawn(row(Span("ready", BEGIN, BEGIN)), hours=0) == "="
