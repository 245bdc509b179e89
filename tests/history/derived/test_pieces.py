"""The parts of a zlib stream that can be decompressed alone are found, in a time that grows with the file only."""

import itertools
import zlib
from collections.abc import Sequence

import msgpack
import pytest

from chronolet.history.derived import pieces as found_pieces
from chronolet.history.derived.pieces import Piece, pieces
from chronolet.kernel.log.archive import ArchiveDamaged

MARK = b"\x00\x00\xff\xff"
HEAD = b"header"
NOISE = bytes((n * n + n // 7) % 251 for n in range(4_000))


def stream(*blocks: Sequence[object], flush: int = zlib.Z_FULL_FLUSH, level: int = 6) -> bytes:
    compressor, parts = zlib.compressobj(level), []
    for number, block in enumerate(blocks):
        parts += [compressor.flush(flush)] if number else []
        parts += [compressor.compress(msgpack.packb(entry)) for entry in block]
    return HEAD + b"".join(parts) + compressor.flush()


def found(content: bytes) -> list[Piece]:
    return list(pieces(content, len(HEAD), "f", lambda: None))


def check(content: bytes, blocks: Sequence[Sequence[object]]) -> None:
    """Expect these blocks, each of which can be decompressed alone."""
    made = found(content)
    assert [len(piece.lengths) for piece in made] == [len(block) for block in blocks]
    for piece, block in zip(made, blocks, strict=True):
        plain = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content[piece.offset : piece.offset + piece.size])
        assert plain == piece.plain == b"".join(map(msgpack.packb, block))
        ends = list(itertools.accumulate(piece.lengths, initial=0))
        assert [msgpack.unpackb(plain[a:b]) for a, b in itertools.pairwise(ends)] == list(block)


BLOCKS = [[["a", number, n, NOISE[n : n + 50]] for n in range(20)] for number in range(5)]


def test_each_full_flush_ends_a_block() -> None:
    check(stream(*BLOCKS), BLOCKS)


def test_a_stream_without_flushes_is_one_block() -> None:
    whole = [entry for block in BLOCKS for entry in block]
    check(stream(whole), [whole])
    check(stream(whole, level=0), [whole])


def test_a_flush_that_keeps_what_precedes_ends_no_block() -> None:
    content = stream(*BLOCKS, flush=zlib.Z_SYNC_FLUSH)
    assert content.count(MARK) == 4
    check(content, [[entry for block in BLOCKS for entry in block]])


@pytest.mark.parametrize("chunk", [5, 64, 1_000])
def test_it_does_not_matter_how_much_is_read_at_once(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(found_pieces, "_CHUNK", chunk)
    check(stream(*BLOCKS), BLOCKS)
    check(stream(*BLOCKS, level=0), BLOCKS)


def test_marks_within_entries_end_no_block() -> None:
    block = [[MARK], [MARK * 2 + b"x"], MARK]
    check(stream(block, block, level=0), [block, block])


def test_entries_that_consist_of_marks_are_no_blocks() -> None:
    """Each entry ends with what looks like a flush: a number whose bytes are those of one."""
    block = [["a", 0x0000FFFF + (n << 32)] for n in range(1, 50)]
    content = stream(block, level=0)
    assert content.count(MARK) > 40
    check(content, [block])


def test_the_time_grows_with_the_size_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of marks in one block: formerly, all before was decompressed again for each of them."""
    decompressed = 0
    make = zlib.decompressobj

    class Counting:
        def __init__(self, *arguments: int) -> None:
            self._real = make(*arguments)

        def decompress(self, data: bytes) -> bytes:
            nonlocal decompressed
            decompressed += len(data)
            return self._real.decompress(data)

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    monkeypatch.setattr(zlib, "decompressobj", Counting)
    block = [[n, MARK * 500] for n in range(20)]
    content = stream(block, level=0)
    assert content.count(MARK) >= 10_000
    made = found(content)
    assert b"".join(piece.plain for piece in made) == b"".join(map(msgpack.packb, block))
    assert len(content) < decompressed < 4 * len(content)


def test_the_work_pauses() -> None:
    count = 0

    def pause() -> None:
        nonlocal count
        count += 1

    content = stream([[n, NOISE] for n in range(500)], level=0)
    assert len(list(pieces(content, len(HEAD), "f", pause))) == 1
    assert count >= len(content) // (64 * 1024)


WRONG = {
    "truncated": lambda content: content[:-30],
    "without a checksum": lambda content: content[:-4],
    "with another checksum": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "with more at the end": lambda content: content + b"more",
    "with its head only": lambda content: content[: len(HEAD) + 2],
    "empty": lambda content: content[: len(HEAD)],
    "altered": lambda content: content[:200] + b"\x55\xaa\x55" + content[203:],
    "not zlib": lambda content: HEAD + b"hello" * 100,
    "ends within an entry": lambda _: HEAD + zlib.compress(msgpack.packb(BLOCKS[0])[:-1]),
    "no msgpack": lambda _: HEAD + zlib.compress(b"\xc1\xc1\xc1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_damage_is_an_error(name: str) -> None:
    with pytest.raises(ArchiveDamaged, match="f: "):
        found(WRONG[name](stream(*BLOCKS)))
