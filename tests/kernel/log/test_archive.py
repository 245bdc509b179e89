"""Archive files: entries round-trip across files and ranges, and damage is reported."""

import hashlib
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet_schemas import codec, pleg, pod, registry
from chronolet_schemas.envelope import START, Entry, Position
from tests.golden.samples import sample


def entries(first: int, last: int, ms: int = 1_700_000_000_000) -> list[Entry]:
    return [
        Entry(
            Position(ms + n // 3, n),
            "pod.Happened@1",
            "pod/default/web",
            "",
            "pod/0#1",
            f"{ms}-{n - 1}",
            bytes([n % 256]),
        )
        for n in range(first, last + 1)
    ]


def in_folder(folder: Path, node: str, run: str) -> Archive:
    return Archive(FolderStorage(folder / "archive", run), node, run)


def path_of(archive: Archive, name: str) -> Path:
    return Path(archive.storage.place(name))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return in_folder(tmp_path, "node-1", "run-1")


def test_entries_are_read_back_as_they_were_written(archive: Archive, tmp_path: Path) -> None:
    written = entries(1, 1000)
    file = archive.write(written, START)
    path = path_of(archive, file.name)
    assert path == tmp_path / "archive/run-1" / f"{written[0].position}..{written[-1].position}.archive"
    assert (file.first, file.last, file.count) == (written[0].position, written[-1].position, 1000)
    content = path.read_bytes()
    assert (file.size_bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert list(archive.read()) == written
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [file.name]


def test_a_range_is_read_across_files(archive: Archive) -> None:
    everything = entries(1, 350)
    for begin in range(0, 350, 100):
        archive.write(everything[begin : begin + 100], everything[begin - 1].position if begin else START)
    assert list(archive.read()) == everything
    assert list(archive.read(everything[149].position)) == everything[150:]
    assert list(archive.read(everything[99].position, everything[199].position)) == everything[100:200]
    assert list(archive.read(everything[149].position, everything[151].position)) == everything[150:152]
    assert list(archive.read(everything[-1].position)) == []
    assert [n for n, *_ in archive.files()] == [everything[i].position for i in (0, 100, 200, 300)]


def test_the_same_entries_make_the_same_file(archive: Archive) -> None:
    assert archive.write(entries(1, 50), START) == archive.write(iter(entries(1, 50)), START)
    assert len(archive.files()) == 1


def test_files_that_overlap_are_read_once(archive: Archive) -> None:
    everything = entries(1, 200)
    archive.write(everything[:100], START)
    archive.write(everything[:150], START)
    archive.write(everything[100:200], everything[99].position)
    assert list(archive.read()) == everything


def test_an_archive_of_another_run_or_node_is_not_read(archive: Archive, tmp_path: Path) -> None:
    file = archive.write(entries(1, 5), START)
    assert list(in_folder(tmp_path, "node-1", "run-2").read()) == []
    with pytest.raises(ArchiveDamaged, match="node 'node-1', expected 'node-2'"):
        list(in_folder(tmp_path, "node-2", "run-1").read())
    with pytest.raises(ArchiveDamaged, match=file.name):
        list(in_folder(tmp_path, "x", "run-1").read())


def test_an_empty_archive_has_no_entries_and_no_entries_are_written(archive: Archive) -> None:
    assert (list(archive.read()), archive.files()) == ([], [])
    with pytest.raises(ValueError, match="nothing to archive"):
        archive.write([], START)


def test_entries_with_a_gap_are_not_written(archive: Archive) -> None:
    everything = entries(1, 10)
    with pytest.raises(ArchiveDamaged, match=r"expected event number 5, found .*-6"):
        archive.write(everything[:4] + everything[5:], START)
    with pytest.raises(ArchiveDamaged, match="expected event number 1, found"):
        archive.write(everything[1:], START)
    assert archive.files() == []


def test_a_missing_file_is_an_error(archive: Archive) -> None:
    everything = entries(1, 30)
    for begin in (0, 10, 20):
        file = archive.write(everything[begin : begin + 10], everything[begin - 1].position if begin else START)
        if begin == 10:
            path_of(archive, file.name).unlink()
    with pytest.raises(ArchiveDamaged, match=r"expected event number 11, found .*-21"):
        list(archive.read())
    assert list(archive.read(everything[19].position)) == everything[20:]


def test_a_foreign_entry_takes_one_number(archive: Archive) -> None:
    """An entry whose writer chose the id itself lies between two of ours."""
    everything = entries(1, 6)
    everything[2] = Entry(Position(everything[2].position.milliseconds, 0), "", "", "", "", "", b"")
    archive.write(everything, START)
    assert list(archive.read()) == everything


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[:-10],
    "cut in the header": lambda content: content[:40],
    "empty": lambda content: b"",
    "another file": lambda content: b"hello\n" * 100,
    "a changed byte": lambda content: content[:-300] + bytes([content[-300] ^ 0x40]) + content[-299:],
    "no body": lambda content: content[: content.index(b"count") + 8],
    "another format": lambda content: content.replace(b"\xa6format\x01", b"\xa6format\x09"),
    "an entry too few": lambda content: content.replace(b"\xa5count\xcd\x03\xe8", b"\xa5count\xcd\x03\xe9"),
    "no list": lambda content: content[: content.index(b"count") + 8] + zlib.compress(msgspec.msgpack.encode({"a": 1})),
    "no entry": lambda content: content[: content.index(b"count") + 8] + zlib.compress(msgspec.msgpack.encode([1, 2])),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_an_error_that_names_the_file(name: str, archive: Archive) -> None:
    path = path_of(archive, archive.write(entries(1, 1000), START).name)
    damaged = DAMAGES[name](path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.raises(ArchiveDamaged) as caught:
        list(archive.read())
    assert str(path) in str(caught.value)


def test_a_changed_byte_is_an_error_or_changes_no_entry(archive: Archive) -> None:
    """Damage to any byte of the file raises an error or changes no entry."""
    written = entries(1, 40)
    path = path_of(archive, archive.write(written, START).name)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            read = list(archive.read())
        except ArchiveDamaged:
            continue
        assert read == written, f"byte {at}"


def test_typical_events_take_few_bytes(archive: Archive) -> None:
    """Prints the size: the goal is about 25 bytes per event. The bound only catches a gross error."""
    chance = random.Random(7)
    written = [typical(n, chance) for n in range(1, 5001)]
    file = archive.write(written, START)
    raw = sum(sum(map(len, entry[1:])) + len(str(entry.position)) for entry in written) / len(written)
    print(f"\narchive: {file.size_bytes / len(written):.1f} bytes an event, of {raw:.0f}")  # noqa: T201
    assert file.size_bytes / len(written) < 60


def typical(n: int, chance: random.Random) -> Entry:
    """Return an event of one of many containers that start and die. Its cause is a recent event."""
    cls = chance.choice((pleg.ContainerStarted, pleg.ContainerDied, pod.ContainerStarted, pod.ContainerExited))
    name = f"default/web-{chance.randrange(30)}"
    at = Position(1_700_000_000_000 + n * 137 + chance.randrange(100), n)
    changes: dict[str, object] = {"pod": name, "uid": f"0f3c1a2e-1111-4222-8333-{zlib.crc32(name.encode()):012}"}
    fields = cls.__struct_fields__
    attempt = n // 300
    changes |= {"attempt": attempt} if "attempt" in fields else {}
    changes |= {"id": hashlib.sha256(f"{name} {attempt}".encode()).hexdigest()} if "id" in fields else {}
    changes |= {
        field: at.milliseconds - chance.randrange(99) for field in ("started_at", "finished_at") if field in fields
    }
    message = msgspec.structs.replace(sample(cls), **changes)
    cause = f"{at.milliseconds - chance.randrange(5)}-{n - 1}"
    return Entry(at, registry.type_of(cls), f"pod/{name}", message.subject(), "pod/0#1", cause, codec.encode(message))
