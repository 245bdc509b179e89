"""A missing or damaged file of the archive tells from where on the log can be read again, to a reader of all or few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.history.archives import NodeArchive
from chronolet.history.derived.upkeep import Upkeep
from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START, Entry, Position

FIFTH = "pod/fifth"
ENTRIES = [
    Entry(Position(1_000 + n, n), "x.Y@1", "pod/web" if n % 5 else FIFTH, "", "pod#1", "", b"x") for n in range(1, 41)
]
END = ENTRIES[-1].position


@pytest.fixture
def node(tmp_path: Path) -> NodeArchive:
    """An archive with four files of ten entries."""
    node = NodeArchive(lambda run: FolderStorage(tmp_path, run), "node-1", MemoryStore())
    archive = node.current()
    for begin in range(0, 40, 10):
        part = ENTRIES[begin : begin + 10]
        archive.write(part, Position(part[0].position.milliseconds, part[0].position.n - 1))
    return node


def file(node: NodeArchive, index: int) -> Path:
    archive = node.current()
    return Path(archive.storage.place(archive.files()[index].name))


def remove(path: Path) -> None:
    path.unlink()


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def read(node: NodeArchive, wanted: Wanted = EVERYTHING) -> tuple[list[int], int]:
    """Read all that is wanted and can be read. Return the numbers of the entries, and how many gaps there were."""
    found, after, gaps = [], START, 0
    while True:
        try:
            found.extend(one.position.n for one in node.entries(after, END, wanted) if wanted.meets(one))
        except HistoryMissing as missing:
            gaps += 1
            if missing.resume is None:
                return found, gaps
            after = missing.resume
        else:
            return found, gaps


@pytest.mark.parametrize("harm", [remove, damage])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_entries_after_a_gap_can_be_read(node: NodeArchive, index: int, harm: Callable[[Path], None]) -> None:
    harm(file(node, index))
    found, gaps = read(node)
    assert gaps == 1
    assert set(range(1, 41)) - set(found) <= set(range(10 * index + 1, 10 * index + 11))
    assert found[-10:] == list(range(31, 41))


@pytest.mark.parametrize("harm", [remove, damage])
@pytest.mark.parametrize("index", [0, 1, 2, 3])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_gap_ends_at_the_same_entry_for_a_reader_of_few_entries(
    node: NodeArchive, index: int, harm: Callable[[Path], None], *, indexed: bool
) -> None:
    if indexed:
        assert [one.problem for one in Upkeep(node.current(), tuple).run()] == [""] * 4
    harm(file(node, index))
    found, gaps = read(node, Wanted(entity=lambda name: name == FIFTH))
    assert gaps == (0 if (harm, index) == (remove, 3) else 1)
    harmed = range(10 * index + 1, 10 * index + 11)
    assert [one for one in found if one not in harmed] == [n for n in range(5, 41, 5) if n not in harmed]
