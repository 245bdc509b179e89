"""The format of a bundle: what is written is read, and whatever was truncated, altered or invented is refused."""

import hashlib
import io
import json
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from chronolet.history.bundle import format as bundle_format
from chronolet.history.bundle import parts as bundle_parts
from chronolet.history.bundle.format import Manifest, Redaction
from chronolet.history.bundle.parts import Part, Unreadable
from chronolet.history.bundle.reader import Bundle
from chronolet.history.bundle.writer import BundleWriter
from chronolet_schemas.envelope import START, Entry, Position

NOON = 1_800_000_000_000
COUNT = 12_000


def entry(number: int, **more: Any) -> Entry:
    fields = {
        "type": "pod.ContainerStarted@1",
        "entity": f"pod/default/web-{number % 7}",
        "subject": "container/app",
        "actor": "pod/3#17",
        "cause": str(Position(NOON + (number - 3) // 4, number - 3)) if number > 3 else "request",
        "data": msgspec.msgpack.encode({"pod": "default/web", "number": number}),
    }
    return Entry(Position(NOON + number // 4, number), **{**fields, **more})


ENTRIES = [entry(number) for number in range(1, COUNT + 1)]


def about(begins: Position = START) -> Manifest:
    return Manifest(
        node="node-1",
        run="r",
        created_at=NOON,
        created_by="1.2.3",
        begins=str(begins),
        begins_at=NOON,
        ends="",
        ends_at=NOON + 10,
        count=0,
        redaction=Redaction(rules=1),
    )


class AnyWriter(BundleWriter):
    """Writes what no reader accepts, too, as the program of a stranger may."""

    def check(self, part: Part, stored: bytes) -> None:
        """Accept any part."""


def written(entries: list[Entry] = ENTRIES, states: bytes = b"\x80") -> bytes:
    stream = io.BytesIO()
    writer = AnyWriter(stream)
    writer.states("pod", 7, states)
    writer.entries(entries)
    writer.finish(about())
    return stream.getvalue()


WHOLE = written()


def opened(content: bytes) -> Bundle:
    return Bundle(io.BytesIO(content), "some.bundle")


def test_what_was_written_is_read() -> None:
    bundle = opened(WHOLE)
    bundle.check()
    assert len(bundle.manifest.of("log")) > 2
    assert list(bundle.entries()) == ENTRIES
    assert [(part.kind, part.format, states) for part, states in bundle.states()] == [("pod", 7, b"\x80")]
    assert (bundle.manifest.count, bundle.manifest.ends) == (COUNT, str(ENTRIES[-1].position))


@pytest.mark.parametrize("first", [0, 1, 4_999, 5_000, 5_001, COUNT - 1, COUNT])
@pytest.mark.parametrize("length", [0, 1, 5_000, COUNT])
def test_any_range_is_read(first: int, length: int) -> None:
    positions = [START, *(one.position for one in ENTRIES)]
    after, upto = positions[first], positions[min(first + length, COUNT)]
    assert list(opened(WHOLE).entries(after, upto)) == ENTRIES[first : first + length]


ODD = {
    "a foreign entry with an arbitrary number": entry(5, type="", data=b"")._replace(position=Position(NOON + 1, 900)),
    "a time that stands still": entry(5)._replace(position=Position(NOON, 5)),
    "a cause that is later": entry(5, cause=str(Position(NOON + 9, 9))),
    "a cause in a part before": entry(5, cause=str(Position(NOON, 1))),
    "an entry that is its own cause": entry(5, cause=str(entry(5).position)),
    "a large number": entry(5)._replace(position=Position(NOON + 5, 2**53 - 1)),
    "other characters": entry(5, subject="file//\N{SNOWMAN}\n\0"),
    "empty data": entry(5, data=b""),
    "data of a megabyte": entry(5, data=b"\xc6" + bytes(1_000_000)),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_entries_are_read_as_they_were(odd: Entry) -> None:
    entries = [entry(1), entry(2), odd]
    assert list(opened(written(entries)).entries()) == entries


# -- damage -----------------------------------------------------------------------------------------------------------
SMALL = written(ENTRIES[:40])


def test_every_truncation_is_noticed() -> None:
    for size in range(len(SMALL)):
        with pytest.raises(Unreadable, match=r"some\.bundle: .*(truncated|not a bundle)"):
            opened(SMALL[:size])


def test_every_changed_byte_is_noticed() -> None:
    for index in range(len(SMALL)):
        changed = SMALL[:index] + bytes([SMALL[index] ^ 1]) + SMALL[index + 1 :]
        with pytest.raises(Unreadable, match=r"some\.bundle: "):
            opened(changed).check()


def test_added_bytes_are_noticed() -> None:
    for content in (SMALL + b"\n", SMALL + SMALL, b"\n" + SMALL):
        with pytest.raises(Unreadable):
            opened(content)


FOREIGN = {
    "nothing": (b"", "not a bundle"),
    "a text": (b"hello\n" * 100, "not a bundle"),
    "a zip file": (b"PK\x03\x04" + bytes(500), "not a bundle"),
    "a gzip file": (b"\x1f\x8b" + bytes(500), "not a bundle"),
    "an archive file": (b"chronolet archive 1\n" + bytes(500), "not a bundle"),
    "a file of age": (b"age-encryption.org/v1\n-> X25519 abc", "encrypted with age"),
    "a message of gpg": (b"-----BEGIN PGP MESSAGE-----\n", "encrypted with gpg"),
    "a newer format": (b"chronolet bundle 2\n" + bytes(500), r"newer version of chronolet: format 2.* up to 1"),
    "a number without end": (b"chronolet bundle 99999999999999\n", "not a bundle"),
    "format zero": (b"chronolet bundle 0\n" + bytes(500), "found format 0"),
    "only the first line": (bundle_format.MAGIC, "truncated"),
}


@pytest.mark.parametrize(("content", "problem"), FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_bundle_is_named(content: bytes, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        opened(content)


# -- files made by hand, with sums that fit --------------------------------------------------------------------------
def forged(parts: list[tuple[Part, bytes]], change: Callable[[dict[str, Any]], object] = lambda _: None) -> bytes:
    """Return a file with these parts whose sums are right, after a change to its manifest."""
    log = [part for part, _ in parts if part.what == "log"]
    manifest = msgspec.structs.replace(
        about(),
        parts=tuple(part for part, _ in parts),
        count=sum(part.count for part in log),
        ends=log[-1].last if log else "0-0",
    )
    plain = msgspec.to_builtins(manifest)
    change(plain)
    text = json.dumps(plain).encode()
    trailer = b"\n%016x %s\n" % (len(text), hashlib.sha256(text).hexdigest().encode())
    return b"".join((bundle_format.MAGIC, *(stored for _, stored in parts), text, trailer))


GOOD = bundle_parts.encode_entries(ENTRIES[:5])


def packed(columns: Any, plain: bytes | None = None, **more: Any) -> tuple[Part, bytes]:
    """Return a part with these columns, described as if it had the first five entries."""
    content = msgspec.msgpack.encode(columns) if plain is None else plain
    described = {"first": GOOD[0].first, "last": GOOD[0].last, "count": 5, **more}
    return bundle_parts.encode_part("log", content, **described)


COLUMNS: list[Any] = msgspec.msgpack.decode(zlib.decompress(GOOD[1]))


def with_column(index: int, value: Any) -> list[Any]:
    return [*COLUMNS[:index], value, *COLUMNS[index + 1 :]]


TIME = b"\xa5_time\xcf" + (10**15).to_bytes(8, "big")
"""The last field of an entry's data: a time in the year 33658."""
FORGED: dict[str, tuple[list[tuple[Part, bytes]], str]] = {
    "columns of different lengths": ([packed(with_column(0, [NOON] * 4))], "invalid"),
    "an index without a text": ([packed(with_column(2, [["a"], [0, 0, 0, 0, 1]]))], "invalid"),
    "a negative index": ([packed(with_column(2, [["a", "b"], [0, 0, 0, 0, -1]]))], "negative index"),
    "a cause before the part": ([packed(with_column(6, [1, "", "", "", ""]))], "places before"),
    "a negative cause": ([packed(with_column(6, [-1, "", "", "", ""]))], "places before"),
    "positions that go back": ([packed(with_column(1, [1, 1, -1, 1, 1]))], "not in order"),
    "a time that cannot be shown": ([packed(with_column(7, [b"\x81" + TIME] * 5))], "expected at most"),
    "a wrong type": ([packed(with_column(7, ["text"] * 5))], "invalid"),
    "fewer entries than described": ([packed(COLUMNS, count=6)], "found 5 entries"),
    "nested lists": ([packed(None, b"\x91" * 200_000)], "invalid"),
    "a list of a million nothings": ([packed(with_column(0, [0] * 1_000_000))], "length <= 100000"),
    "a part that claims too much": (
        [(msgspec.structs.replace(GOOD[0], plain_bytes=bundle_parts.LARGEST_PART + 1), GOOD[1])],
        "expected at most",
    ),
    "a part that claims too little": (
        [(msgspec.structs.replace(GOOD[0], plain_bytes=GOOD[0].plain_bytes - 1), GOOD[1])],
        "does not decompress to",
    ),
}


@pytest.mark.parametrize(("parts", "problem"), FORGED.values(), ids=FORGED)
def test_a_forged_part_is_refused(parts: list[tuple[Part, bytes]], problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        opened(forged(parts)).check()


def change(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda plain: plain.update({name: value})


MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a count that is not that of the parts": (change("count", 6), "found 5 entries"),
    "an end that is not that of the parts": (change("ends", "1-1"), "expected 5 up to 1-1"),
    "a beginning after the entries": (change("begins", "9999999999999-9"), "follow"),
    "a position that is none": (change("begins", "noon"), "invalid"),
    "no entries": (lambda plain: plain.update(parts=[], count=0, ends="0-0"), "parts do not have the sizes"),
    "a field of another type": (change("node", 7), "invalid"),
    "a time that cannot be shown": (change("created_at", 10**15), "invalid"),
    "a time before the epoch": (change("ends_at", -1), "invalid"),
    "no name": (change("node", ""), "invalid"),
    "a negative size": (lambda plain: plain["parts"][0].update(size_bytes=-1), "sizes"),
    "a huge size": (lambda plain: plain["parts"][0].update(size_bytes=2**60), "sizes"),
    "deep nesting": (change("facts", json.loads("[" * 300 + "]" * 300)), "invalid"),
}


@pytest.mark.parametrize(("change", "problem"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_forged_manifest_is_refused(change: Callable[[dict[str, Any]], object], problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        opened(forged([GOOD], change))


def test_a_manifest_that_claims_to_be_huge_is_not_read() -> None:
    trailer = b"\n%016x %s\n" % (2**60, b"0" * 64)
    with pytest.raises(Unreadable, match="its manifest has"):
        opened(bundle_format.MAGIC + trailer)


def test_unknown_fields_and_parts_of_a_later_release_are_passed_over() -> None:
    other = bundle_parts.encode_part("states", b"x" * 100)
    later = (msgspec.structs.replace(other[0], what="index"), other[1])
    bundle = opened(forged([later, GOOD], change("mood", "good")))
    bundle.check()
    assert list(bundle.entries()) == ENTRIES[:5]


def test_a_zip_bomb_is_not_decompressed() -> None:
    """128 MiB of zeros are 128 KiB compressed; only a piece of it is ever decompressed."""
    compressor = zlib.compressobj(9)
    stored = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(128)) + compressor.flush()
    part = msgspec.structs.replace(
        GOOD[0], size_bytes=len(stored), plain_bytes=1_000, sha256=hashlib.sha256(stored).hexdigest()
    )
    pieces: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zlib, "decompressobj", lambda: _Counting(pieces))
        with pytest.raises(Unreadable, match="does not decompress to the 1000 bytes"):
            opened(forged([(part, stored)])).check()
    assert sum(pieces) <= 1 << 20, "read no further than the manifest says, apart from one piece"


class _Counting:
    """A real decompressor that notes how much it has decompressed."""

    def __init__(self, pieces: list[int]) -> None:
        self._real = _REAL()
        self._pieces = pieces

    def decompress(self, data: bytes, most: int) -> bytes:
        piece = self._real.decompress(data, most)
        self._pieces.append(len(piece))
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


_REAL = zlib.decompressobj
