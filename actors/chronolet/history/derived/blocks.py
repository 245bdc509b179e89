"""Decodes entries of a decompressed block of an archive file. Pure.

Input: a block, where each entry ends in it, the numbers of entries. Output: `Entry`. Next: `building`, `reading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from chronolet_schemas.envelope import Entry, Position

_decode = msgspec.msgpack.Decoder(tuple[str, str, str, str, str, str, bytes]).decode


def entries_of_block(plain: bytes, ends: Sequence[int], numbers: Iterable[int]) -> Iterator[Entry]:
    """Yield the entries with these numbers, counted from 0 in the block. `ends`: 0, and where each entry ends.

    Raises ValueError for anything that is not an entry.
    """
    view, new = memoryview(plain), tuple.__new__
    for number in numbers:
        at, *fields = _decode(view[ends[number] : ends[number + 1]])
        milliseconds, n = at.split("-")
        # `new` bypasses the named tuples' constructors, which would double the cost of both.
        yield new(Entry, (new(Position, (int(milliseconds), int(n))), *fields))
