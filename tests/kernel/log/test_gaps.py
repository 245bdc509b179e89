"""Missing archive files are detected from the names of the remaining files; foreign entries cause no false alarm."""

from pathlib import Path

import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.log.gaps import gaps
from chronolet_schemas.envelope import START, Entry, Position
from tests.kernel.log.test_archive import entries

EVERYTHING = entries(1, 40)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = Archive(FolderStorage(tmp_path / "archive", "run-1"), "n", "run-1")
    for begin in range(0, 40, 10):
        write(archive, EVERYTHING[begin : begin + 10])
    return archive


def write(archive: Archive, part: list[Entry]) -> str:
    return archive.write(part, Position(part[0].position.milliseconds, part[0].position.n - 1)).name


def remove(archive: Archive, index: int) -> None:
    Path(archive.storage.place(archive.files()[index].name)).unlink()


def found(archive: Archive, upto: Position = EVERYTHING[-1].position) -> list[str]:
    return [str(gap) for gap in gaps(archive, upto)]


def at(n: int) -> Position:
    return EVERYTHING[n - 1].position


def test_a_complete_archive_has_no_gap(archive: Archive) -> None:
    assert found(archive) == []
    write(archive, EVERYTHING[:15])  # overlaps other files, as after a crash between writing and marking
    assert found(archive) == []


@pytest.mark.parametrize(
    ("index", "gap"),
    [
        (0, f"of the entries after 0-0 before {at(11)}"),
        (1, f"of the entries after {at(10)} before {at(21)}"),
        (3, f"of the entries after {at(30)} up to {at(40)}"),
    ],
)
def test_a_missing_file_is_a_gap(archive: Archive, index: int, gap: str) -> None:
    remove(archive, index)
    assert found(archive) == [gap]


def test_an_accepted_loss_is_no_gap(archive: Archive) -> None:
    remove(archive, 1)
    archive.accept_loss(at(11), at(20))
    assert found(archive) == []
    assert [(part.first, part.last) for part in archive.accepted_losses()] == [(at(11), at(20))]


@pytest.mark.parametrize("edge", [10, 11])
def test_a_foreign_entry_at_an_edge_is_no_gap(tmp_path: Path, edge: int) -> None:
    archive = Archive(FolderStorage(tmp_path / "archive", "run-1"), "n", "run-1")
    every = list(EVERYTHING[:20])
    foreign = Position(every[edge - 1].position.milliseconds, 0 if edge == 10 else 500)
    every[edge - 1] = Entry(foreign, "", "", "", "", "", b"")
    archive.write(every[:10], START)
    archive.write(every[10:], every[9].position if edge == 11 else Position(every[9].position.milliseconds, 10))
    assert found(archive, every[-1].position) == []


def test_a_storage_without_the_beginning_is_not_this_logs(archive: Archive, tmp_path: Path) -> None:
    archive.expect(at(40))
    elsewhere = Archive(FolderStorage(tmp_path / "archive", "run-2"), "n", "run-2")
    elsewhere.expect(START)
    with pytest.raises(ArchiveDamaged, match=rf"no file of the log up to {at(40)}.*other runs: run-1\. Use"):
        elsewhere.expect(at(40))
    elsewhere.write(EVERYTHING[30:], at(30))
    elsewhere.expect(at(40))
    with pytest.raises(ArchiveDamaged):
        elsewhere.expect(at(20))


def test_a_damaged_file_is_detected_without_reading_its_entries(archive: Archive) -> None:
    name = archive.files()[1].name
    path = Path(archive.storage.place(name))
    archive.check(name)
    content = path.read_bytes()
    for index in range(120, len(content)):
        path.write_bytes(content[:index] + bytes([content[index] ^ 0x10]) + content[index + 1 :])
        with pytest.raises(ArchiveDamaged, match=name):
            archive.check(name)
