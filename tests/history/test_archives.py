"""A missing or damaged file of the archive tells from where on the log can be read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.history.archives import NodeArchive
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START, Entry, Position

EVERYTHING = [Entry(Position(1_000 + n, n), "x.Y@1", "pod/web", "", "pod#1", "", b"x") for n in range(1, 41)]
END = EVERYTHING[-1].position


@pytest.fixture
def node(tmp_path: Path) -> NodeArchive:
    """An archive with four files of ten entries."""
    node = NodeArchive(lambda run: FolderStorage(tmp_path, run), "node-1", MemoryStore())
    archive = node.current()
    for begin in range(0, 40, 10):
        part = EVERYTHING[begin : begin + 10]
        archive.write(part, Position(part[0].position.milliseconds, part[0].position.n - 1))
    return node


def file(node: NodeArchive, index: int) -> Path:
    archive = node.current()
    return Path(archive.storage.place(archive.files()[index].name))


def remove(path: Path) -> None:
    path.unlink()


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def read(node: NodeArchive) -> tuple[list[int], int]:
    """Read all that can be read. Return the numbers of the entries, and how many gaps there were."""
    found, after, gaps = [], START, 0
    while True:
        try:
            found.extend(one.position.n for one in node.entries(after, END))
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
