"""Reads the archive by its indexes: of each file, only the blocks that have entries that are wanted.

Input: an `Archive`, `Wanted`. Output: entries, oldest first; at least all that meet the conditions. A file whose index
is missing, damaged, foreign or outdated is read as a whole. Next: `history.archives`.
"""

from __future__ import annotations

import bisect
import contextlib
import copy
import itertools
import zlib
from collections.abc import Iterator, Sequence

from chronolet.history.derived.blocks import entries_of_block
from chronolet.history.derived.index import ArchiveIndex, Block, as_unsigned, block_at, chosen
from chronolet.history.derived.sealed import Unusable
from chronolet.history.derived.stored import Stored
from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import Late
from chronolet.kernel.log.archive import Archive, Gapless, Part
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.times import time_of

_READ_AT_ONCE = 1024 * 1024
"""Adjacent blocks are read together up to this size."""
NEAR_ENTRIES = 5_000
"""How many entries are searched without an index for one that was written while positions were ahead."""


class IndexedArchive:
    """The archive of one run with its indexes."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.stored = Stored(archive)
        self._reading: _Reading | None = None

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:
        """Yield at least the entries after `after` up to `upto` that meet the conditions, and the last entry up to
        `upto`, whatever it is.

        Raises ArchiveDamaged if a part that must be read is damaged, or files are missing before or between others;
        OSError.
        """
        self._reading = reading = _Reading(after, upto, wanted)
        parts = [part for part in self.archive.needed() if part.last > after and part.first <= upto]
        for part in parts:
            final = part.last >= upto or part is parts[-1]
            partly = not wanted.anything or part.first <= reading.at or part.last > upto
            index = self._index(part) if partly else None
            if index is not None:
                try:
                    yield from self._chosen(part, index, reading, final=final)
                except Unusable:
                    index = None
            if index is None:
                yield from self._whole(part, reading)
            if part.last >= upto:
                return
            reading.at = part.last

    @property
    def reached(self) -> Position:
        """The entry up to which the last call of `entries` has read: nothing that is wanted is missing before it."""
        return self._reading.at if self._reading is not None else START

    def numbered(self, number: int) -> Entry | None:
        """Return the entry with this number; None if it is not in the archive. Raises like `entries`."""
        for part in self.archive.needed():
            if part.first.n <= number <= part.last.n:
                found = self._in_block(part, number) or next(
                    (entry for entry in self.archive.entries_of(part.name) if entry.position.n == number), None
                )
                if found is not None:
                    return found
        return None

    def _in_block(self, part: Part, number: int) -> Entry | None:
        """Return the entry with this number by the file's index; None if it cannot be found in this way."""
        index = self._index(part)
        if index is None:
            return None
        with contextlib.suppress(Unusable):
            # Numbers rise with positions, except those of foreign entries.
            block = max((at for at, block in enumerate(index.blocks) if block.first[1] <= number), default=0)
            for entry in self._read(part.name, index, _numbers_of(index, block)):
                if entry.position.n == number:
                    return entry
        return None

    def last_until(self, milliseconds: int, after: Position, upto: Position) -> Late:
        """See `ArchiveReader`. A file whose index cannot be used is read only as far as its entries are among the next
        `NEAR_ENTRIES`: it may be damaged, and seldom matters. Raises like `entries`.
        """
        parts = [part for part in self.archive.needed() if part.last > after and part.first <= upto]
        unsearched: list[str] = []
        for part in reversed(parts):
            near = (after.n if parts[0].first.n <= after.n <= parts[0].last.n else parts[0].first.n) + NEAR_ENTRIES
            try:
                found = self._late_by_index(part, milliseconds, after, upto)
            except Unusable:
                found, whole = self._late_near(part, milliseconds, after, min(upto, part.last), near)
                if not whole:
                    unsearched.append(part.name)
            if found is not None:
                return Late(found, tuple(unsearched))
        return Late(None, tuple(unsearched))

    def _late_by_index(self, part: Part, milliseconds: int, after: Position, upto: Position) -> Position | None:
        """Return the position of the last entry of a file between two positions, and until a time. Raises Unusable."""
        if self.stored.index_summary(part).earliest > milliseconds:
            return None
        index = self.stored.index(part)
        for at in range(block_at(index, upto), max(block_at(index, after), 0) - 1, -1):
            if index.blocks[at].earliest <= milliseconds:
                found = self._read(part.name, index, _numbers_of(index, at))
                late = [one.position for one in found if _is_late(one, milliseconds, after, upto)]
                if late:
                    return late[-1]
        return None

    def _late_near(
        self, part: Part, milliseconds: int, after: Position, upto: Position, near: int
    ) -> tuple[Position | None, bool]:
        """Return the same without an index, as far as numbers are not above `near`, and whether all were read."""
        late = None
        if part.first.n > near:
            return late, False
        for entry in self.archive.entries_of(part.name):
            if entry.type and entry.position.n > near:
                return late, False
            if _is_late(entry, milliseconds, after, upto):
                late = entry.position
        return late, True

    def last_before(self, bound: Position) -> Position:
        """Return the position of the last archived entry up to `bound`, or of an earlier one if no index tells which
        it is: the last one of a file. START if there is none.
        """
        ended = START
        for part in self.archive.needed():
            if part.first > bound:
                break
            if part.last <= bound:
                ended = max(ended, part.last)
                continue
            with contextlib.suppress(Unusable):
                index = self.stored.index(part)
                numbers = _numbers_of(index, block_at(index, bound))
                found = [one.position for one in self._read(part.name, index, numbers) if one.position <= bound]
                ended = max(ended, *found)
        return ended

    def _index(self, part: Part) -> ArchiveIndex | None:
        """Return the usable index of a file; None if there is none."""
        try:
            return self.stored.index(part)
        except Unusable:
            return None

    # -- reading one file ----------------------------------------------------------------------------------------
    def _whole(self, part: Part, reading: _Reading) -> Iterator[Entry]:
        """Yield all entries of one file that were not yet read."""
        where = self.archive.storage.place(part.name)
        for entry in self.archive.entries_of(part.name):
            if entry.position <= reading.at:
                continue
            if entry.position > reading.upto:
                return
            reading.gapless.check(entry, where)
            reading.at = entry.position
            yield entry

    def _chosen(self, part: Part, index: ArchiveIndex, reading: _Reading, *, final: bool) -> Iterator[Entry]:
        """Yield the wanted entries of one file, and the last one up to `upto` if it is the final file. Raises
        Unusable as soon as the index turns out not to describe the file.
        """
        summary, where = index.summary, self.archive.storage.place(part.name)
        if part.first > reading.at:
            copy.copy(reading.gapless).check_number(Position(*summary.first), where, foreign=summary.foreign_first)
        begin, end = max(block_at(index, reading.at), 0), block_at(index, reading.upto)
        numbers = _between(chosen(index, reading.wanted), _numbers_of(index, begin, end))
        if final:
            # The last entry up to `upto` is in the last block, at its end if that is the end of the file.
            last = range(summary.count - 1, summary.count) if part.last <= reading.upto else _numbers_of(index, end)
            numbers = sorted({*numbers, *last})
        for entry in self._read(part.name, index, numbers):
            if reading.at < entry.position <= reading.upto:
                reading.at = entry.position
                reading.gapless.reached(entry.position, foreign=not entry.type)
                yield entry
        if part.last <= reading.upto:
            reading.gapless.reached(part.last, foreign=summary.foreign_last)

    def _read(self, name: str, index: ArchiveIndex, numbers: Sequence[int]) -> Iterator[Entry]:
        """Yield the entries with these numbers in the file, lowest first. Raises Unusable."""
        for span in _spans(index.blocks, numbers):
            blocks = [block for block, _ in span]
            begin, end = blocks[0].offset, blocks[-1].offset + blocks[-1].size
            try:
                content = self.archive.storage.part(name, begin, end - begin)
            except OSError as error:  # the file may be shorter than the index says
                raise Unusable(f"cannot be followed: {error}") from error
            for block, chosen_ in span:
                part = content[block.offset - begin : block.offset - begin + block.size]
                yield from _decoded(block, part, chosen_)


class _Reading:
    """How far an archive has been read. `at`: the last entry that was yielded, or left out at the end of a file."""

    def __init__(self, after: Position, upto: Position, wanted: Wanted) -> None:
        self.at = after
        self.upto = upto
        self.wanted = wanted
        self.gapless = Gapless(after)


def _is_late(entry: Entry, milliseconds: int, after: Position, upto: Position) -> bool:
    return after < entry.position <= upto and time_of(entry) <= milliseconds


def _numbers_of(index: ArchiveIndex, block: int, last: int | None = None) -> range:
    """Return the numbers of the entries of a block, or of the blocks up to `last`."""
    following = (block if last is None else last) + 1
    end = index.blocks[following].number if following < len(index.blocks) else index.summary.count
    return range(index.blocks[block].number, end)


def _between(numbers: Sequence[int], wanted: range) -> Sequence[int]:
    return numbers[bisect.bisect_left(numbers, wanted.start) : bisect.bisect_left(numbers, wanted.stop)]


def _spans(blocks: Sequence[Block], numbers: Sequence[int]) -> Iterator[list[tuple[Block, Sequence[int]]]]:
    """Yield the blocks with the entries of these numbers, in groups that are read at once."""
    span: list[tuple[Block, Sequence[int]]] = []
    at = 0
    for block, following in itertools.zip_longest(blocks, blocks[1:]):
        end = len(numbers) if following is None else bisect.bisect_left(numbers, following.number, at)
        if end == at:
            continue
        if span and block.offset + block.size - span[0][0].offset > _READ_AT_ONCE:
            yield span
            span = []
        span.append((block, [number - block.number for number in numbers[at:end]]))
        at = end
    if span:
        yield span


def _decoded(block: Block, content: bytes, numbers: Sequence[int]) -> Iterator[Entry]:
    """Yield the entries of a block with these numbers, from 0. Raises Unusable if the block is another one."""
    if zlib.crc32(content) != block.crc or len(content) != block.size:
        raise Unusable("does not describe the file as it is")
    ends = tuple(itertools.accumulate(as_unsigned(block.lengths), initial=0))
    if numbers[-1] + 1 >= len(ends):
        raise Unusable("has fewer lengths of entries than entries")
    needed = ends[numbers[-1] + 1]  # what follows the last wanted entry is not decompressed
    if not needed:
        raise Unusable("has entries without a length")  # it would be no limit below
    try:
        plain = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, needed)
        if len(plain) != needed:
            raise Unusable("has other lengths of entries than the file")
        yield from entries_of_block(plain, ends, numbers)
    except (zlib.error, ValueError) as error:
        raise Unusable(f"has an entry that cannot be read: {error}") from error
