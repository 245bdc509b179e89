"""Moments of the past are found by indexes as they are without."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import LARGEST_N, ArchiveReader, entries
from chronolet.history.state import Latest, state_at
from chronolet.history.when import MomentError, Number, Time, located
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.times import time_of
from tests.history.derived.support import WEB, folded, kinds
from tests.history.derived.test_checkpoints import Node

NOW = 2**42
KEPT = {"with indexes": True, "without": False}


@pytest.fixture(params=KEPT.values(), ids=KEPT.keys())
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    return Node(tmp_path, indexed=request.param)


def test_a_time_stands_for_the_last_entry_up_to_it(node: Node) -> None:
    log = node.shelf.entries
    first, last = log[0].position.milliseconds, log[-1].position.milliseconds
    edges = [time_of(log[number]) + more for number in (0, 299, 300, 599, 600, 849, 850, 999) for more in (0, 1)]
    for milliseconds in (*edges, *random.Random(3).sample(range(first, last + 1_000), 40)):
        expected = max(one.position for one in log if time_of(one) <= milliseconds)
        assert located(node.store, node.archive, Time(milliseconds), NOW) == (expected, milliseconds, ())
    with pytest.raises(MomentError, match="the history begins at"):
        located(node.store, node.archive, Time(first - 1), NOW)


def test_a_number_stands_for_its_entry(node: Node) -> None:
    for number in (1, 2, 300, 301, 850, 851, 1_000):
        assert (
            located(node.store, node.archive, Number(number), NOW).position == node.shelf.entries[number - 1].position
        )


def test_entries_after_a_time_are_read(node: Node) -> None:
    log = node.shelf.entries
    for number in (1, 20, 299, 300, 301, 555, 849, 850, 851, 999):
        at = log[number - 1].position
        bound = Position(at.milliseconds, LARGEST_N)
        found = list(entries(node.store, node.archive, bound))
        assert found == [one for one in log if one.position > bound], number


@pytest.fixture
def short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chronolet.history.entries.LONG_ENTRIES", 10)


@pytest.mark.usefixtures("short_is_long")
@pytest.mark.parametrize("wanted", [EVERYTHING, Wanted(pod=WEB)], ids=["everything", "a pod"])
def test_archive_and_stream_are_one_history(node: Node, wanted: Wanted) -> None:
    log = node.shelf.entries
    for begin in (0, 10, 299, 640, 849, 850, 920):
        after = log[begin - 1].position if begin else START
        for end in (one for one in (300, 700, 850, 851, 900, 1_000) if one > begin):
            upto = log[end - 1].position if end < 1_000 else None
            found = list(entries(node.store, node.archive, after, upto, wanted, prefer_archive=True))
            expected = [one for one in log[begin:end] if wanted.meets(one)]
            assert [one for one in found if wanted.meets(one)] == expected, (begin, end)
            positions = [one.position for one in found]
            assert positions == sorted(set(positions))


def _missing(path: Path) -> None:
    path.unlink()


def _damaged(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.usefixtures("short_is_long")
@pytest.mark.parametrize("harm", [_missing, _damaged])
def test_the_stream_stands_in_for_a_file_whose_entries_it_has(node: Node, harm: Callable[[Path], None]) -> None:
    """The stream begins with 851: only the files up to 900 are needed, and that of 601 to 900 by few."""
    log, wanted = node.shelf.entries, Wanted(entity=lambda name: name.startswith("pod/"))
    harm(node.shelf.paths(".archive")[-1])
    found = list(entries(node.store, node.archive, START, None, wanted, prefer_archive=True))
    assert [one for one in found if wanted.meets(one)] == [one for one in log if wanted.meets(one)]
    harm(node.shelf.paths(".archive")[2])
    found = list(entries(node.store, node.archive, log[850].position, None, wanted, prefer_archive=True))
    assert [one for one in found if wanted.meets(one)] == [one for one in log[851:] if wanted.meets(one)]
    with pytest.raises(HistoryMissing):
        list(entries(node.store, node.archive, START, None, wanted, prefer_archive=True))


class NotReachable:
    """An archive of which nothing may be asked."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was asked of the archive")


def test_the_present_is_read_without_the_archive_if_the_stream_has_all(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is trimmed, all is archived, and there are no snapshots."""
    monkeypatch.setattr("chronolet.history.entries.LONG_ENTRIES", 10)
    log = node.shelf.entries
    node.server.log, node.server.trimmed = list(log), START
    archive = cast("ArchiveReader", NotReachable())
    latest = Latest(node.store, archive, kinds())
    assert latest.moment().states == latest.moment().states == folded(log)
    assert state_at(node.store, archive, kinds()).states == folded(log)
    wanted = Wanted(pod=WEB)
    found = list(entries(node.store, archive, START, None, wanted))
    assert found == list(log)
    with pytest.raises(AssertionError, match="entries was asked"):
        list(entries(node.store, archive, START, None, wanted, prefer_archive=True))
    monkeypatch.setattr("chronolet.history.entries.LONG_ENTRIES", 1_000)
    assert list(entries(node.store, archive, START, None, wanted, prefer_archive=True)) == list(log)
