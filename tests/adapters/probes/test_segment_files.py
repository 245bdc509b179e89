"""Files of segments are read as they were written; damage and missing files are named."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.rules.probes.segments.file_names import part_of
from chronolet.rules.probes.segments.gaps import head_of
from chronolet_schemas.envelope import START, Position
from tests.rules.probes.segments.outcomes import T0, segments

LAST = Position(T0, 3)
NAME = f"0-0..{LAST}.probes"


class MemoryStorage:
    """An `ArchiveStorage` in memory. The contract of storages is checked elsewhere; here the format is."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def names(self) -> Sequence[str]:
        return list(self.files)

    def opened(self, name: str) -> io.BytesIO:
        return io.BytesIO(self.files[name])

    def put(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def set_aside(self, name: str) -> None:
        self.files[f"{name}.damaged"] = self.files.pop(name)

    def delete(self, name: str) -> None:
        del self.files[name]

    def place(self, name: str = "") -> str:
        return f"memory/{name}"

    def other_runs(self) -> Sequence[str]:
        return []


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def files(storage: MemoryStorage) -> ArchivedSegments:
    return ArchivedSegments(Archive(storage, "n", "run-1"))


@pytest.mark.parametrize("count", [0, 1, 3, 2_000])
def test_a_file_is_read_as_it_was_written(files: ArchivedSegments, storage: MemoryStorage, count: int) -> None:
    written = files.write(START, LAST, segments(count))
    assert (written.name, written.outcomes, written.size_bytes) == (NAME, 2 * count, len(storage.files[NAME]))
    assert list(files.segments(NAME)) == segments(count)
    assert files.read_whole(NAME) == written == files.write(START, LAST, segments(count))


def test_files_are_listed_by_their_part_of_the_stream(files: ArchivedSegments, storage: MemoryStorage) -> None:
    storage.files = dict.fromkeys(("9-0..10-0.probes", "0-0..9-0.probes", "1-1..2-2.archive", "x.probes", "1..2"), b"")
    assert [part.name for part in files.parts()] == ["0-0..9-0.probes", "9-0..10-0.probes"]
    assert part_of("1-0..x-0.probes") is part_of("1-0..2-0..3-0.probes") is None


def test_a_header_tells_what_the_file_has(files: ArchivedSegments) -> None:
    files.write(START, LAST, segments())
    found = files.header(NAME)
    assert (found.outcomes, found.oldest, found.newest) == (6, T0, T0 + 12)
    assert found.heads == tuple(map(head_of, segments()))
    files.write(START, LAST, [])
    assert (files.header(NAME).outcomes, files.header(NAME).oldest, files.header(NAME).heads) == (0, 0, ())


def test_an_accepted_loss_is_not_missing(files: ArchivedSegments, storage: MemoryStorage) -> None:
    storage.files = {"0-0..3-0.probes": b"", "7-0..8-0.probes": b"", "x.lost": b""}
    ((after, last),) = files.missing(START, Position(8, 0))
    files.accept_loss(after, last)
    assert files.missing(START, Position(8, 0)) == []
    assert len(files.parts()) == 2
    assert [part.name for part in files.accepted_losses()] == [f"{after}..{last}.probes.lost"]


# -- damage ------------------------------------------------------------------------------------------------------------
def error_of(files: ArchivedSegments) -> str:
    with pytest.raises(ArchiveDamaged) as raised:
        list(files.segments(NAME))
    return str(raised.value)


def test_every_change_of_the_size_is_noticed(files: ArchivedSegments, storage: MemoryStorage) -> None:
    files.write(START, LAST, segments())
    good = storage.files[NAME]
    for length in range(len(good)):
        storage.files[NAME] = good[:length]
        assert error_of(files).startswith(f"memory/{NAME}: ")


def test_a_file_under_another_name_is_refused(files: ArchivedSegments, storage: MemoryStorage) -> None:
    files.write(START, LAST, segments())
    storage.files["copy"] = storage.files[NAME]
    with pytest.raises(ArchiveDamaged, match=f"header has last '{LAST}', expected '0-0'"):
        list(files.segments("copy"))
