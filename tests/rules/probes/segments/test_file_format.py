"""The content of a file of segments is read as it was packed; damage is refused, whatever the sizes of its pieces."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import msgpack
import pytest

from chronolet.rules.probes.segments.encoding import SegmentDamaged
from chronolet.rules.probes.segments.file_format import FileFormat
from chronolet.rules.probes.segments.file_names import FilePart, part_of, uncovered
from chronolet.rules.probes.segments.gaps import head_of
from chronolet_schemas.envelope import START, Position
from tests.rules.probes.segments.outcomes import T0, segments

FORMAT = FileFormat("n", "run-1")
PART = FilePart(START, Position(T0, 3), "")


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


def error_of(content: bytes) -> str:
    with pytest.raises(SegmentDamaged) as raised:
        list(FORMAT.segments(PART, [content]))
    return str(raised.value)


def test_segments_are_read_from_pieces_of_any_size() -> None:
    """Also if the header ends with a piece."""
    content = FORMAT.packed(PART, segments())
    for size in range(1, len(content) + 1):
        assert list(FORMAT.segments(PART, pieces(content, size))) == segments(), size
        assert FORMAT.header(PART, pieces(content, size)).heads == tuple(map(head_of, segments()))


def test_a_truncated_file_is_refused() -> None:
    content = FORMAT.packed(PART, segments())
    for length in range(len(content)):
        error_of(content[:length])


def test_a_header_tells_what_the_file_has() -> None:
    found = FORMAT.header(PART, [FORMAT.packed(PART, segments())])
    assert (found.outcomes, found.oldest, found.newest) == (6, T0, T0 + 12)
    empty = FORMAT.header(PART, [FORMAT.packed(PART, [])])
    assert (empty.outcomes, empty.oldest, empty.heads) == (0, 0, ())


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"node": "m"}, "header has node 'm', expected 'n'"),
        ({"run": "run-2"}, "header has run 'run-2'"),
        ({"format": 2}, "header has format 2, expected 1"),
        ({"after": "1-0"}, "header has after '1-0', expected '0-0'"),
        ({"heads": []}, "its 3 segments differ from the 0 in its header"),
        ({"heads": 5}, "unreadable header"),
        ({"newest": 253_402_300_800_000}, "a time of the header is out of range"),
        ({"oldest": -1}, "a time of the header is out of range"),
        ({"heads": [["p", 0, 1, 1, 0, 1 << 62, 0, 0, None, False]]}, "a time of the header is out of range"),
        ({"heads": [["p", 0, 1, 1, 0, 9, 0, 0, [0, 1 << 62, 1], False]]}, "a time of the header is out of range"),
    ],
)
def test_another_header_is_refused(header: dict[str, object], message: str) -> None:
    magic, rest = FORMAT.packed(PART, segments()).split(b"\n", 1)
    unpacker = msgpack.Unpacker()
    unpacker.feed(rest)
    found = unpacker.unpack()
    assert message in error_of(magic + b"\n" + msgpack.packb(found | header) + rest[unpacker.tell() :])


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
def test_other_content_is_refused(content: bytes, message: str) -> None:
    assert message in error_of(content)


def test_a_segment_that_does_not_fit_is_refused() -> None:
    magic_and_header = FORMAT.packed(PART, [])[: -len(zlib.compress(b"", 9))]
    assert "the segment cannot be decoded" in error_of(magic_and_header + zlib.compress(msgpack.packb({"format": 1})))


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
def test_parts_without_a_file_are_found(names: str, kept: tuple[int, int], missing: str) -> None:
    parts = [part_of("{}-0..{}-0.probes".format(*one.split("-"))) for one in names.split()]
    found = uncovered([part for part in parts if part], *(Position(one, 0) for one in kept))
    assert " ".join(f"{after.milliseconds}-{last.milliseconds}" for after, last in found) == missing
