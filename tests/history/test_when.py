"""Moments of the past: how people name them, and where they are in the log."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from chronolet.history.entries import LARGEST_N, entries
from chronolet.history.when import MomentError, Number, Time, When, located, parsed
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import Position
from chronolet_schemas.times import time_of
from tests.history.test_history import Node

BERLIN = timezone(timedelta(hours=1))
NOW = round(datetime(2026, 11, 21, 9, 0, 0, tzinfo=UTC).timestamp() * 1000)
MINUTE, HOUR = 60_000, 3_600_000


def utc(*parts: int) -> Time:
    return Time(round(datetime(*parts, tzinfo=UTC).timestamp() * 1000))  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-15m", Time(NOW - 15 * MINUTE)),
        ("-1h30m", Time(NOW - 90 * MINUTE)),
        ("-1.5d", Time(NOW - 36 * HOUR)),
        ("-250ms", Time(NOW - 250)),
        ("2026-11-21T03:00:00Z", utc(2026, 11, 21, 3)),
        ("2026-11-21T03:00:00.250Z", Time(utc(2026, 11, 21, 3).milliseconds + 250)),
        ("2026-11-21T03:00+05:30", utc(2026, 11, 20, 21, 30)),
        ("2026-11-21 03:00", utc(2026, 11, 21, 2)),
        ("2026-11-20", utc(2026, 11, 19, 23)),
        ("2026-11-21t03:00z", utc(2026, 11, 21, 3)),
        ("03:00Z", utc(2026, 11, 21, 3)),
        ("03:00+02:00", utc(2026, 11, 21, 1)),
        ("23:30-10:00", utc(2026, 11, 20, 9, 30)),
        (" 03:00 ", utc(2026, 11, 21, 2)),
        ("9:59:59", utc(2026, 11, 21, 8, 59, 59)),
        ("10:00", Time(NOW)),
        ("10:01", utc(2026, 11, 20, 9, 1)),
        ("@1795812003", Time(1_795_812_003_000)),
        ("@1795812003.25", Time(1_795_812_003_250)),
        ("#17", Number(17)),
        ("1795812003250-17", Position(1_795_812_003_250, 17)),
    ],
)
def test_each_form_is_understood(text: str, expected: When) -> None:
    """Times without a zone are those of the given one, here an hour ahead of UTC, where it is ten o'clock."""
    assert parsed(text, NOW, BERLIN) == expected


def test_times_without_a_zone_are_local_by_default() -> None:
    local = datetime(2026, 7, 1, 3, 0).astimezone()
    assert parsed("2026-07-01 03:00", NOW) == Time(round(local.timestamp() * 1000))


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ((0, 45), "02:30", (2026, 10, 25, 0, 30)),
        ((1, 15), "02:30", (2026, 10, 25, 0, 30)),
        ((1, 45), "02:30", (2026, 10, 25, 1, 30)),
        ((1, 45), "01:59", (2026, 10, 24, 23, 59)),
        ((2, 0), "02:59", (2026, 10, 25, 1, 59)),
    ],
)
def test_in_an_hour_that_comes_twice_the_latest_time_counts(
    now: tuple[int, int], text: str, expected: tuple[int, ...]
) -> None:
    """In Berlin, clocks went back from three to two o'clock on this day, at one o'clock UTC."""
    at = datetime(2026, 10, 25, *now, tzinfo=UTC)
    assert parsed(text, round(at.timestamp() * 1000), ZoneInfo("Europe/Berlin")) == utc(*expected)


BAD = [
    *("soon", "15m", "-15", "-m", "-1w", "20261121", "1795812003", "25:00", "12:60", "#", "#-1", "1-2-3", "@", "@x"),
    *("2026-13-01", "2026-11-21+02:00", "2026-11-21-15", "2026-W47-6", "2026-11-21x03:00", "2026-02-30T00:00"),
    *("#99999999999999999999", "0001-01-01T00:00+14:00x", "-" + "9" * 400 + "d"),
]


@pytest.mark.parametrize("text", ["", *BAD])
def test_anything_else_is_an_error_that_lists_the_forms(text: str) -> None:
    with pytest.raises(MomentError, match="expected a duration before now such as -15m, a time such as"):
        parsed(text, NOW, BERLIN)


# -- in the log ----------------------------------------------------------------------------------------------------
@pytest.fixture
def node() -> Node:
    """A node with an entry per second, the first with number 1 at 1,000,000 ms."""
    node = Node()
    for number in range(10):
        node.now = 1_000_000 + number * 1000
        node.note("pod/default/web", str(number))
    return node


def found(node: Node, when: When) -> list[int]:
    """Return the times of the log's entries up to this moment."""
    at = located(node.store, node.archive, when, node.now)
    return [time_of(entry) for entry in entries(node.store, node.archive, upto=at.position)]


def test_a_time_includes_all_entries_up_to_it(node: Node) -> None:
    assert found(node, Time(1_003_000)) == [1_000_000, 1_001_000, 1_002_000, 1_003_000]
    assert found(node, Time(1_003_999)) == [1_000_000, 1_001_000, 1_002_000, 1_003_000]
    assert located(node.store, node.archive, Time(1_003_999), node.now).milliseconds == 1_003_999


@pytest.mark.parametrize("trimmed", [0, 4, 10])
def test_an_entry_includes_itself(node: Node, trimmed: int) -> None:
    log = list(node.store.scan(Position(0, 0)))
    if trimmed:
        node.trim(log[trimmed - 1].position)
    for index, entry in enumerate(log):
        for when in (Number(entry.position.n), entry.position):
            at = located(node.store, node.archive, when, node.now)
            assert at[:2] == (entry.position, time_of(entry))
            assert len(found(node, when)) == index + 1


@pytest.mark.parametrize(
    ("when", "error"),
    [
        (Time(1_009_001), "1970-01-01T00:16:49Z is in the future: it is 1970-01-01T00:16:49Z"),
        (Time(-(10**18)), "-1000000000000000000 ms since the epoch is before the beginning of the history"),
        (Time(999_999), "the beginning of the history: the history begins at 1970-01-01T00:16:40Z with entry #1"),
        (Number(11), "the log has no entry #11 yet: its last one is #10"),
        (Number(0), "the log has no entry #0, or it is not available: the history begins at 1970-01-01T00:16:40Z"),
        (Position(1_009_000, 11), "the log has no position 1009000-11 yet: its last one is 1009000-10"),
        (Position(999_999, 1), "the log has no entry at position 999999-1: the history begins at"),
        (Position(1_003_000, 3), "the log has no entry at position 1003000-3: the history begins at"),
    ],
)
def test_a_moment_that_the_log_does_not_have_is_an_error(node: Node, when: When, error: str) -> None:
    with pytest.raises(MomentError, match=error):
        located(node.store, node.archive, when, node.now)


def test_after_a_clock_that_was_ahead_the_last_entry_recorded_by_then_counts(node: Node) -> None:
    node.now += HOUR  # the server's clock jumps ahead
    node.note("pod/default/web", "in an hour")
    for second in range(10, 20):
        node.now = 1_000_000 + second * 1000
        node.note("pod/default/web", str(second))
    ahead = 1_009_000 + HOUR
    assert found(node, Time(1_009_500)) == [1_000_000 + second * 1000 for second in range(10)]
    assert found(node, Time(1_012_000))[10:] == [ahead, 1_010_000, 1_011_000, 1_012_000]


@pytest.mark.parametrize("trimmed", [0, 5_000, 7_000])
def test_so_it_does_if_thousands_of_entries_were_written_while_the_clock_was_ahead(node: Node, trimmed: int) -> None:
    node.now += HOUR
    for number in range(6_000):
        node.note("pod/default/web", str(number))
    for second in range(10, 20):
        node.now = 1_000_000 + second * 1000
        node.note("pod/default/web", str(second))
    if trimmed:
        log = list(node.store.scan(Position(0, 0)))
        node.trim(log[min(trimmed, len(log) - 2)].position)
    assert found(node, Time(1_012_000))[-3:] == [1_010_000, 1_011_000, 1_012_000]


@pytest.mark.parametrize("lost", [2, 3, 5])
def test_a_gap_at_the_end_of_what_is_needed_is_an_error(node: Node, lost: int) -> None:
    """Entries that are missing right before the moment would otherwise silently not count."""
    node.trim(node.store.last())
    del node.archive.listed[lost:6]
    with pytest.raises(HistoryMissing):
        found(node, Time(1_005_000))


def test_a_bound_between_entries_needs_no_entry_of_its_own(node: Node) -> None:
    node.trim(node.store.last())
    assert len(list(entries(node.store, node.archive, upto=Position(1_004_500, LARGEST_N)))) == 5


@pytest.mark.parametrize("trimmed", [1, 5, 9])
def test_each_moment_next_to_the_trimmed_part_is_available(node: Node, trimmed: int) -> None:
    """The server notes up to when it has trimmed, which may be long after the last entry that it has trimmed."""
    log = list(node.store.scan(Position(0, 0)))
    node.trim(log[trimmed - 1].position)
    for milliseconds in range(1_000_000, 1_009_001, 250):
        assert found(node, Time(milliseconds)) == list(range(1_000_000, milliseconds + 1, 1000))


def test_a_moment_in_the_stream_needs_no_archive(node: Node) -> None:
    log = list(node.store.scan(Position(0, 0)))
    node.trim(log[4].position)
    node.archive.listed.clear()
    for when in (Time(1_007_500), Number(8), log[7].position):
        assert located(node.store, node.archive, when, node.now).position == log[7].position


def test_a_log_that_began_while_the_clock_was_ahead_has_moments_afterwards() -> None:
    node = Node()
    node.now = 1_000_000 + HOUR
    node.note("pod/default/web", "ahead")
    for second in range(5):
        node.now = 1_000_000 + second * 1000
        node.note("pod/default/web", str(second))
    assert found(node, Time(1_002_500))[1:] == [1_000_000, 1_001_000, 1_002_000]


@pytest.mark.parametrize("trimmed", [False, True])
def test_entries_of_other_programs_are_passed_over(node: Node, trimmed: bool) -> None:
    """Their numbers are arbitrary."""
    node.now += 1000
    node.foreign()
    node.server.last = Position(node.now, 10)
    node.now += 1000
    last = node.note("pod/default/web", "after")
    if trimmed:
        node.trim(node.store.last())
    at = located(node.store, node.archive, Time(node.now - 500), node.now)
    assert [one.type for one in entries(node.store, node.archive, upto=at.position)].count("pod.SandboxBlocked@1") == 10
    assert located(node.store, node.archive, Number(last.n), node.now).position == last
    assert located(node.store, node.archive, Number(4), node.now).milliseconds == 1_003_000


def test_an_entry_of_another_program_may_be_the_last(node: Node) -> None:
    node.now += 1000
    node.foreign()
    assert located(node.store, node.archive, Number(4), node.now).milliseconds == 1_003_000
    assert located(node.store, node.archive, Time(node.now), node.now).position == node.store.last()
