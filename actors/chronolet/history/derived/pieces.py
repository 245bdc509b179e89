"""Finds the parts of an archive file's zlib stream that can be decompressed alone. Pure.

Input: the content of a file. Output: `Piece`, each as small as possible. Next: `building`.

Each part of the stream that may be a block is decompressed twice: with all that precedes it, and alone. It is a block
if both give the same. Every byte is decompressed a few times at most, whatever the file contains.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgpack

from chronolet.kernel.log.archive import ArchiveDamaged

_FLUSHED = b"\x00\x00\xff\xff"
"""The end of a full flush. It may also occur by chance."""
_ZLIB_HEAD = 2
_ADLER = 4
_CHUNK = 64 * 1024


class Piece(NamedTuple):
    """A part of the zlib stream that can be decompressed alone."""

    offset: int
    size: int
    plain: bytes
    lengths: list[int]
    """The length of each entry in `plain`."""


class _Part(NamedTuple):
    """Some consecutive bytes of the stream."""

    begin: int
    compressed: bytes
    plain: bytes
    lengths: list[int]
    """The lengths of the entries that end in it."""
    whole: bool
    """Whether a block may end with it: with a flush, or the end of the stream, and not within an entry."""
    final: bool


def pieces(content: bytes, offset: int, place: str, pause: Callable[[], None]) -> Iterator[Piece]:
    """Yield the pieces of the stream that begins at `offset`. `pause` is called for every few kibibytes.

    Raises ArchiveDamaged, with `place` in its text, if the stream is damaged or ends within an entry.
    """
    block: _Alone | None = None
    following: _Alone | None = None  # may be the next block
    for part in _parts(content, offset, place):
        pause()
        if block is None:
            block = _Alone(part.begin)
        elif block.whole and following is None:
            following = _Alone(part.begin)
        if following is None:
            _extend(block, (part,), place)
        elif not following.add(part):
            # It refers to what precedes it, so it belongs to the same block.
            _extend(block, (*following.parts, part), place)
            following = None
        elif following.whole:
            yield block.piece()
            block, following = following, None
    if block is not None:
        _extend(block, following.parts if following else (), place)
        yield block.piece()


def _extend(block: _Alone, parts: Sequence[_Part], place: str) -> None:
    if not all(map(block.add, parts)):
        raise ArchiveDamaged(f"{place}: where its blocks begin cannot be found")


class _Alone:
    """A part of the stream that begins at `begin`, decompressed without what precedes it."""

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        self._filled = False
        self.parts: list[_Part] = []
        self.whole = False
        """Whether the block may end here: it has entries, and does not end within one."""

    def add(self, part: _Part) -> bool:
        """Add what follows; return whether it can be decompressed."""
        try:
            plain = self._decompressor.decompress(part.compressed)
        except zlib.error:
            return False
        if plain != part.plain or self._decompressor.eof != part.final:
            return False
        self.parts.append(part)
        self._filled = self._filled or bool(part.lengths)
        self.whole = part.whole and self._filled
        return True

    def piece(self) -> Piece:
        """Return what was added."""
        return Piece(
            self._begin,
            sum(len(part.compressed) for part in self.parts),
            b"".join(part.plain for part in self.parts),
            [length for part in self.parts for length in part.lengths],
        )


def _parts(content: bytes, offset: int, place: str) -> Iterator[_Part]:
    """Decompress the stream. Raises ArchiveDamaged."""
    begin, last = offset + _ZLIB_HEAD, len(content) - _ADLER
    decompressor, entries = zlib.decompressobj(), _Entries()
    try:
        decompressor.decompress(content[offset:begin])
        while begin < last:
            found = content.find(_FLUSHED, begin, min(begin + _CHUNK + len(_FLUSHED) - 1, last))
            end = min(begin + _CHUNK, last) if found < 0 else found + len(_FLUSHED)
            plain = decompressor.decompress(content[begin:end])
            final = end == last
            if final:
                decompressor.decompress(content[last:])
                _expect_end(decompressor, place)
            lengths = entries.lengths(plain)
            if final and not entries.whole:
                raise ArchiveDamaged(f"{place}: ends within an entry")
            whole = entries.whole and (final or found >= 0)
            yield _Part(begin, content[begin:end], plain, lengths, whole, final)
            begin = end
    except (zlib.error, ValueError, msgpack.UnpackException) as error:
        raise ArchiveDamaged(f"{place}: cannot be read: {error or type(error).__name__}") from error
    _expect_end(decompressor, place)


def _expect_end(decompressor: zlib._Decompress, place: str) -> None:
    if not decompressor.eof:
        raise ArchiveDamaged(f"{place}: truncated")
    if decompressor.unused_data:
        raise ArchiveDamaged(f"{place}: goes on after the end of its entries")


class _Entries:
    """Measures the entries of a stream. `whole`: whether it does not end within one."""

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(max_buffer_size=0)
        self._fed = self._ended = 0

    def lengths(self, plain: bytes) -> list[int]:
        """Return the lengths of the entries that end in the next bytes. Raises like the unpacker."""
        self._unpacker.feed(plain)
        self._fed += len(plain)
        found = []
        while self._ended < self._fed:
            try:
                self._unpacker.skip()
            except msgpack.OutOfData:
                break
            found.append(self._unpacker.tell() - self._ended)
            self._ended = self._unpacker.tell()
        return found

    @property
    def whole(self) -> bool:
        return self._ended == self._fed
