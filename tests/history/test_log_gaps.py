"""A log with gaps: what can be read is read, and each gap is in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from chronolet.history.gaps import Gap, available
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START, Entry, Position

LOG = [Entry(Position(1_000 + n, n), "x.Y@1", "pod/web", "", "pod#1", "", b"x") for n in range(1, 10)]


def at(number: int) -> Position:
    return LOG[number - 1].position if number else START


def reader(lost: set[int], resume: Position | None, reached: Position | None) -> Callable[[Position], Iterator[Entry]]:
    def read(after: Position) -> Iterator[Entry]:
        for entry in LOG:
            if entry.position > after:
                if entry.position.n in lost:
                    raise HistoryMissing(f"no {entry.position.n}", resume, reached)
                yield entry

    return read


def found(lost: set[int], resume: int | None, reached: int | None = None, trimmed: int = 0) -> list[int | Gap]:
    read = reader(lost, None if resume is None else at(resume), None if reached is None else at(reached))
    return [one if isinstance(one, Gap) else one.position.n for one in available(read, lambda: at(trimmed))]


@pytest.mark.parametrize(
    ("resume", "trimmed"), [(5, 0), (None, 5), (2, 5)], ids=["where it says", "at the trim position", "not backwards"]
)
def test_reading_goes_on_after_a_gap(resume: int | None, trimmed: int) -> None:
    assert found({4, 5}, resume, trimmed=trimmed) == [1, 2, 3, Gap(at(3), "no 4"), 6, 7, 8, 9]


def test_a_gap_is_after_the_last_entry_before_it_although_that_was_not_wanted() -> None:
    log, read = {2, 3, 4, 5}, reader({5}, at(5), at(4))
    few = available(lambda after: (one for one in read(after) if one.position.n not in log - {5}), lambda: START)
    assert [one if isinstance(one, Gap) else one.position.n for one in few] == [1, Gap(at(4), "no 5"), 6, 7, 8, 9]


def test_without_gaps_there_are_only_entries() -> None:
    assert found(set(), None) == list(range(1, 10))


def test_a_gap_whose_end_is_not_known_is_an_error() -> None:
    with pytest.raises(HistoryMissing, match="no 4"):
        found({4}, None)
