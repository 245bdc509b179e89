"""The index of one archive file: where its blocks begin, and which entries belong to which entity, type and pod. Pure.

Input: an `ArchiveIndex`, or the content of an index file. Output: the other; the numbers of the entries that a reader
wants. An index file is a sealed file (`sealed`): the line `chronolet index 1`, a `Summary`, and a zlib stream of the
msgpack map `ArchiveIndex`. Lists of numbers are bytes, four for each number, the lowest byte first.
Next: `building`, which makes an index, and `reading`, which uses it.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from chronolet.history.derived import sealed
from chronolet.history.derived.sealed import Unusable
from chronolet.history.derived.wanted import Named, Wanted
from chronolet.kernel.log.archive import Part
from chronolet_schemas.envelope import Position

FORMAT = 1
SUFFIX = ".index"
_LINE = b"chronolet index 1\n"
_LARGEST_FILE = 2**40
_NUMBER = 4


class Summary(Struct, frozen=True):
    """What a reader needs to know of a file to pass over it. Times are in milliseconds since the epoch."""

    format: int
    node: str
    run: str
    file: str
    """The archive file's name."""
    count: int
    first: tuple[int, int]
    last: tuple[int, int]
    earliest: int
    """The earliest time of an entry. It may be before the position of the first one (docs/adr/0042)."""
    foreign_first: bool
    """Whether another program has written the first entry, whose number then proves nothing."""
    foreign_last: bool
    own_last: tuple[int, int] | None
    """The position of the last entry that no other program has written; None if there is none."""


class Block(Struct, frozen=True, array_like=True):
    """Consecutive entries that can be decompressed without those before."""

    offset: int
    """Where its part of the zlib stream begins in the file."""
    size: int
    crc: int
    """The CRC-32 of this part as it is in the file."""
    number: int
    """The number of its first entry in the file, from 0."""
    first: tuple[int, int]
    """The position of its first entry."""
    earliest: int
    """The earliest time of one of its entries."""
    lengths: bytes
    """The length of each entry in the decompressed block (`unsigned`)."""


class ArchiveIndex(Struct, frozen=True):
    """The contents of one archive file, whose entries are numbered from 0. `numbers` decodes the lists."""

    summary: Summary
    blocks: tuple[Block, ...]
    entities: dict[str, bytes]
    """The entries of each entity."""
    types: dict[str, bytes]
    """The entries of each type, with its version."""
    pods: dict[str, bytes]
    """The entries that name a pod, by namespace/name, without those that belong to it (`wanted.pods_named`); under
    UNREADABLE, those whose data cannot be decoded."""


def name_of(archive_file: str) -> str:
    """Return the name of an archive file's index."""
    return archive_file.rpartition(".")[0] + SUFFIX


# -- files -------------------------------------------------------------------------------------------------------------
def encode(index: ArchiveIndex) -> bytes:
    """Return the content of an index file."""
    return sealed.sealed(_LINE, index.summary, zlib.compress(msgspec.msgpack.encode(index), 6))


def decode(content: bytes) -> ArchiveIndex:
    """Decode an index file. Raises Unusable."""
    summary, begin = sealed.opened(_LINE, content, Summary)
    index = sealed.unpacked(sealed.decompressed(content[begin:], "an unreadable body"), ArchiveIndex, "no index")
    sealed.expect(summary=(index.summary, summary))
    _expect_consistent(index)
    return index


def _expect_consistent(index: ArchiveIndex) -> None:
    """Raise Unusable unless the blocks follow one another in the file, have all its entries and no more."""
    summary, offset, number = index.summary, 0, 0
    last = Position(-1, 0)
    for block in index.blocks:
        end = block.offset + block.size
        count = len(block.lengths) // _NUMBER
        if not (offset <= block.offset < end <= _LARGEST_FILE and block.number == number and count):
            raise Unusable(f"has a block at {block.offset} of {block.size} bytes that does not follow the one before")
        if not last < block.first <= summary.last:
            raise Unusable(f"has a block that begins at {Position(*block.first)}, after one that begins at {last}")
        offset, number, last = end, number + count, Position(*block.first)
    sealed.expect(
        count=(summary.count, number),
        first=(summary.first, index.blocks[0].first if index.blocks else None),
    )


def decode_summary(start: bytes) -> Summary:
    """Decode the summary from the first `sealed.SUMMARY_BYTES` of an index file. Raises Unusable."""
    return sealed.opened(_LINE, start, Summary)[0]


def expect(summary: Summary, node: str, run: str, part: Part) -> None:
    """Raise Unusable unless the index is of this archive file, and of this format."""
    sealed.expect(
        format=(summary.format, FORMAT),
        node=(summary.node, node),
        run=(summary.run, run),
        file=(summary.file, part.name),
        first=(Position(*summary.first), part.first),
        last=(Position(*summary.last), part.last),
    )


# -- lists of numbers --------------------------------------------------------------------------------------------------
def unsigned(values: Sequence[int]) -> bytes:
    """Encode non-negative numbers below 2^32."""
    return struct.pack(f"<{len(values)}I", *values)


def as_unsigned(encoded: bytes) -> tuple[int, ...]:
    """Decode `unsigned`. Raises Unusable."""
    if len(encoded) % _NUMBER:
        raise Unusable("has a list with a part of a number")
    return struct.unpack(f"<{len(encoded) // _NUMBER}I", encoded)


def differences(numbers: Sequence[int]) -> bytes:
    """Encode rising numbers."""
    return unsigned([later - earlier for earlier, later in itertools.pairwise((0, *numbers))])


def numbers(encoded: bytes) -> Iterable[int]:
    """Decode `differences`. Raises Unusable."""
    return itertools.accumulate(as_unsigned(encoded))


# -- questions ---------------------------------------------------------------------------------------------------------
def chosen(index: ArchiveIndex, wanted: Wanted) -> Sequence[int]:
    """Return the numbers of the entries that may meet all conditions, lowest first. Raises Unusable."""
    found = [_named(table, condition) for table, condition in _conditions(index, wanted) if condition is not None]
    if wanted.pod is not None:
        own, naming = index.entities.get(f"pod/{wanted.pod}", b""), index.pods.get(wanted.pod, b"")
        found.append({*numbers(own), *numbers(naming)})
    if wanted.alternatives:
        found.append({number for one in wanted.alternatives for number in chosen(index, one)})
    if not found:
        return range(index.summary.count)
    both = sorted(found[0].intersection(*found[1:]))
    if both and both[-1] >= index.summary.count:
        raise Unusable(f"has an entry with the number {both[-1]} of {index.summary.count}")
    return both


def _conditions(index: ArchiveIndex, wanted: Wanted) -> Iterable[tuple[dict[str, bytes], Named | None]]:
    return (index.entities, wanted.entity), (index.types, wanted.type)


def _named(table: dict[str, bytes], condition: Named) -> set[int]:
    found: set[int] = set()
    for name, encoded in table.items():
        if condition(name):
            found.update(numbers(encoded))
    return found


def block_at(index: ArchiveIndex, position: Position) -> int:
    """Return the number of the last block that begins at or before a position; -1 if all begin after it."""
    low, high = 0, len(index.blocks)
    while low < high:
        middle = (low + high) // 2
        if index.blocks[middle].first <= position:
            low = middle + 1
        else:
            high = middle
    return low - 1
