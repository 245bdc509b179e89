"""Builds the index of an archive file from the file's content. Pure.

Input: the content of a file. Output: its `ArchiveIndex`. Next: `upkeep`, which stores it.

A file of this release is flushed after each block of entries; one of an older release is a single block. The blocks are
found in the content itself, so an index can be rebuilt at any time: a full flush ends with the bytes 00 00 FF FF, which
may also occur by chance, so a block counts only if it can be decompressed alone and has whole entries: `pieces`.
"""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from chronolet.history.derived.blocks import entries_of_block
from chronolet.history.derived.index import FORMAT, ArchiveIndex, Block, Summary, differences, unsigned
from chronolet.history.derived.pieces import Piece, pieces
from chronolet.history.derived.wanted import pods_named
from chronolet.kernel.log.archive import ArchiveDamaged, Gapless, Part
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.times import time_of


class Source(NamedTuple):
    """An archive file that is to be indexed."""

    node: str
    run: str
    part: Part
    expected: int
    """The number of its entries by its header."""
    content: bytes
    offset: int
    """Where its zlib stream begins."""
    place: str
    """Its path or URL, for messages."""


class Building:
    """The index of one file, as far as its entries have been read."""

    def __init__(self, source: Source, pause: Callable[[], None] = lambda: None) -> None:
        """`pause` is called again and again while the file is decompressed. It may wait, or raise in order to stop."""
        self._source = source
        self._pause = pause
        self._blocks: list[Block] = []
        self._entities: dict[str, list[int]] = defaultdict(list)
        self._types: dict[str, list[int]] = defaultdict(list)
        self._pods: dict[str, list[int]] = defaultdict(list)
        self._count = 0
        self._first: Entry | None = None
        self._last: Entry | None = None
        self._own_last: Position | None = None

    def entries(self) -> Iterator[Entry]:
        """Yield the file's entries, oldest first, one block in memory at a time. Raises ArchiveDamaged if the file is
        damaged, or if the numbers of its entries have a gap.
        """
        gapless, source = None, self._source
        for piece in pieces(source.content, source.offset, source.place, self._pause):
            begin, earliest = self._count, None
            first = None
            for entry in _entries(piece, self._source.place):
                gapless = gapless or Gapless(entry.position._replace(n=max(entry.position.n - 1, 0)))
                gapless.check(entry, self._source.place)
                first = first or entry
                earliest = min(time_of(entry), time_of(entry) if earliest is None else earliest)
                self._add(entry)
                yield entry
            if first is not None and earliest is not None:
                self._blocks.append(_block(self._source, piece, begin, first.position, earliest))

    def _add(self, entry: Entry) -> None:
        number, self._count = self._count, self._count + 1
        self._first, self._last = self._first or entry, entry
        if entry.type:
            self._own_last = entry.position
        self._entities[entry.entity].append(number)
        self._types[entry.type].append(number)
        for pod in {*pods_named(entry)}:
            if entry.entity != f"pod/{pod}":
                self._pods[pod].append(number)

    def index(self) -> ArchiveIndex:
        """Return the index after all entries have been read. Raises ArchiveDamaged if they are not those of the file's
        name and header.
        """
        part, expected = self._source.part, self._source.expected
        if self._first is None or self._last is None:
            raise ArchiveDamaged(f"{self._source.place}: has no entries")
        if (self._first.position, self._last.position, self._count) != (part.first, part.last, expected):
            raise ArchiveDamaged(
                f"{self._source.place}: has {self._count} entries from {self._first.position} to {self._last.position},"
                f" expected {expected} from {part.first} to {part.last} as in its header and name"
            )
        summary = Summary(
            format=FORMAT,
            node=self._source.node,
            run=self._source.run,
            file=self._source.part.name,
            count=self._count,
            first=_pair(self._first.position),
            last=_pair(self._last.position),
            earliest=min(block.earliest for block in self._blocks),
            foreign_first=not self._first.type,
            foreign_last=not self._last.type,
            own_last=None if self._own_last is None else _pair(self._own_last),
        )
        tables = (
            {name: differences(found) for name, found in sorted(table.items())}
            for table in (self._entities, self._types, self._pods)
        )
        return ArchiveIndex(summary, tuple(self._blocks), *tables)


def built(source: Source) -> ArchiveIndex:
    """Return the index of a file. Raises ArchiveDamaged, as `Building.entries` does."""
    building = Building(source)
    for _ in building.entries():
        pass
    return building.index()


def _block(source: Source, piece: Piece, number: int, first: Position, earliest: int) -> Block:
    crc = zlib.crc32(source.content[piece.offset : piece.offset + piece.size])
    return Block(piece.offset, piece.size, crc, number, _pair(first), earliest, unsigned(piece.lengths))


def _pair(position: Position) -> tuple[int, int]:
    return position.milliseconds, position.n


def _entries(piece: Piece, place: str) -> Iterator[Entry]:
    ends = tuple(itertools.accumulate(piece.lengths, initial=0))
    try:
        yield from entries_of_block(piece.plain, ends, range(len(piece.lengths)))
    except ValueError as error:
        raise ArchiveDamaged(f"{place}: cannot be read: {error}") from error
