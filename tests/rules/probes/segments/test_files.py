"""Files of segments are read as they were written; damage and missing files are named."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence

import msgpack
import pytest

from chronolet.kernel.log.archive import ArchiveDamaged
from chronolet.rules.probes.segments.file_names import part_of
from chronolet.rules.probes.segments.files import SegmentFiles
from chronolet.rules.probes.segments.gaps import head_of
from chronolet.rules.probes.segments.recorder import Recorder
from chronolet.rules.probes.segments.segment import Segment
from chronolet_schemas.envelope import START, Position
from tests.rules.probes.segments.outcomes import T0, outcome

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


def segments(count: int = 3) -> list[Segment]:
    """Return segments of as many processes, each with two outcomes."""
    found = []
    for number in range(count):
        made = Recorder(T0, 100)
        for at in (number, 10 + number):
            made.take(outcome(T0 + at, output="x" * 90), T0)
        found.append(made.close(f"p{number}", T0 + 60))
    return found


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def files(storage: MemoryStorage) -> SegmentFiles:
    return SegmentFiles(storage, "n", "run-1")


@pytest.mark.parametrize("count", [0, 1, 3, 2_000])
def test_a_file_is_read_as_it_was_written(files: SegmentFiles, storage: MemoryStorage, count: int) -> None:
    written = files.write(START, LAST, segments(count))
    assert (written.name, written.outcomes, written.size_bytes) == (NAME, 2 * count, len(storage.files[NAME]))
    assert list(files.segments(NAME)) == segments(count)
    assert files.read_whole(NAME) == written == files.write(START, LAST, segments(count))


def test_files_are_listed_by_their_part_of_the_stream(files: SegmentFiles, storage: MemoryStorage) -> None:
    storage.files = dict.fromkeys(("9-0..10-0.probes", "0-0..9-0.probes", "1-1..2-2.archive", "x.probes", "1..2"), b"")
    assert [part.name for part in files.parts()] == ["0-0..9-0.probes", "9-0..10-0.probes"]
    assert part_of("1-0..x-0.probes") is part_of("1-0..2-0..3-0.probes") is None


@pytest.mark.parametrize(
    ("names", "kept", "missing"),
    [
        ("", (0, 0), ""),
        ("0-5 5-9", (0, 9), ""),
        ("0-5 5-9", (0, 5), ""),  # a file whose event is not in the log yet
        ("0-5 9-12", (0, 12), "5-9"),
        ("5-9", (0, 9), "0-5"),
        ("5-9", (5, 9), ""),
        ("0-5 5-9", (5, 9), ""),  # files that are about to be deleted
        ("0-5", (0, 9), "5-9"),
        ("", (5, 9), "5-9"),
        ("", (9, 9), ""),
        ("0-3 7-8", (0, 9), "3-7 8-9"),
    ],
)
def test_missing_files_are_found(
    files: SegmentFiles, storage: MemoryStorage, names: str, kept: tuple[int, int], missing: str
) -> None:
    storage.files = {"{}-0..{}-0.probes".format(*one.split("-")): b"" for one in names.split()}
    found = files.missing(*(Position(one, 0) for one in kept))
    assert " ".join(f"{after.milliseconds}-{last.milliseconds}" for after, last in found) == missing


def test_a_header_tells_what_the_file_has(files: SegmentFiles) -> None:
    files.write(START, LAST, segments())
    found = files.header(NAME)
    assert (found.outcomes, found.oldest, found.newest) == (6, T0, T0 + 12)
    assert found.heads == tuple(map(head_of, segments()))
    files.write(START, LAST, [])
    assert (files.header(NAME).outcomes, files.header(NAME).oldest, files.header(NAME).heads) == (0, 0, ())


def test_an_accepted_loss_is_not_missing(files: SegmentFiles, storage: MemoryStorage) -> None:
    storage.files = {"0-0..3-0.probes": b"", "7-0..8-0.probes": b"", "x.lost": b""}
    ((after, last),) = files.missing(START, Position(8, 0))
    files.accept_loss(after, last)
    assert files.missing(START, Position(8, 0)) == []
    assert len(files.parts()) == 2
    assert [part.name for part in files.accepted_losses()] == [f"{after}..{last}.probes.lost"]


# -- damage ------------------------------------------------------------------------------------------------------------
def error_of(files: SegmentFiles) -> str:
    with pytest.raises(ArchiveDamaged) as raised:
        list(files.segments(NAME))
    return str(raised.value)


def test_every_change_of_the_size_is_noticed(files: SegmentFiles, storage: MemoryStorage) -> None:
    files.write(START, LAST, segments())
    good = storage.files[NAME]
    for length in range(len(good)):
        storage.files[NAME] = good[:length]
        assert error_of(files).startswith(f"memory/{NAME}: ")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"node": "m"}, "header has node 'm', expected 'n'"),
        ({"run": "run-2"}, "header has run 'run-2'"),
        ({"format": 2}, "header has format 2, expected 1"),
        ({"after": "1-0"}, "header has after '1-0', expected '0-0'"),
        ({"heads": []}, "its 3 segments differ from the 0 in its header"),
        ({"heads": 5}, "unreadable header"),
    ],
)
def test_another_header_is_refused(
    files: SegmentFiles, storage: MemoryStorage, header: dict[str, object], message: str
) -> None:
    files.write(START, LAST, segments())
    magic, rest = storage.files[NAME].split(b"\n", 1)
    unpacker = msgpack.Unpacker()
    unpacker.feed(rest)
    found = unpacker.unpack()
    storage.files[NAME] = magic + b"\n" + msgpack.packb(found | header) + rest[unpacker.tell() :]
    assert message in error_of(files)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"chronolet archive 1\n", "not a file of segments of format 1"),
        (b"chronolet probes 1\n\x05", "unreadable header"),
        (b"chronolet probes 1\n\x80", "header has format None, expected 1"),
        (b"chronolet probes 1\n", "truncated"),
        (b"chronolet probes 1\n\x81", "truncated"),
    ],
)
def test_other_content_is_refused(files: SegmentFiles, storage: MemoryStorage, content: bytes, message: str) -> None:
    storage.files[NAME] = content
    assert message in error_of(files)


def test_a_segment_that_does_not_fit_is_refused(files: SegmentFiles, storage: MemoryStorage) -> None:
    files.write(START, LAST, [])
    magic_and_header = storage.files[NAME][: -len(zlib.compress(b"", 9))]
    storage.files[NAME] = magic_and_header + zlib.compress(msgpack.packb({"format": 1}))
    assert "the segment cannot be decoded" in error_of(files)


def test_a_file_under_another_name_is_refused(files: SegmentFiles, storage: MemoryStorage) -> None:
    files.write(START, LAST, segments())
    storage.files["copy"] = storage.files[NAME]
    with pytest.raises(ArchiveDamaged, match=f"header has last '{LAST}', expected '0-0'"):
        list(files.segments("copy"))
