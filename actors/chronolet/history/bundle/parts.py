"""The parts of a bundle: entries, states and probe results, and the limits of what a reader accepts.

Input: entries, encoded states and results, or bytes of an untrusted file. Output: compressed parts with their
description, or what they have; `Unreadable` for anything else. Pure. Next: `format`, which lists the parts.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Annotated, Any, Literal

import msgspec

from chronolet.kernel.recording import objects
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.prober import RawResult
from chronolet_schemas.times import time_of

What = Literal["log", "states", "results"]

ENTRIES_IN_PART = 5_000
"""How many entries a writer puts into a part: the least that is decompressed to read one."""
BYTES_IN_PART = 8 * 1024 * 1024
"""A writer ends a part early when its entries have this size."""
RESULTS_IN_PART = 5_000
"""How many raw probe results a writer puts into a part: each has at most some kB and 29 values."""
LARGEST_PART = 64 * 1024 * 1024
"""A reader refuses a part of log entries that is larger when decompressed."""
LARGEST_STATES = 128 * 1024 * 1024
"""A reader refuses a checkpoint of one actor kind that is larger when decompressed."""
LARGEST_ENTRY = 8 * 1024 * 1024
"""A reader refuses an entry with more bytes of data."""
MOST_IN_ENTRY, MOST_IN_STATES, MOST_IN_RESULTS = 500_000, 4_000_000, 2_000_000
"""A reader refuses data with more values, each of which may take a hundred bytes when decoded."""
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999: a reader refuses later times, which cannot be shown."""
MOST_ENTRIES = 100_000
"""A reader refuses a part with more entries."""
_PIECE = 256 * 1024


class Unreadable(Exception):  # noqa: N818 - the condition's name
    """The file is no bundle, is damaged, or was written by a newer version. The text says what was found."""


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One zlib stream of the file. A reader passes over parts whose `what` it does not know."""

    what: str
    """`log`: entries. `states`: the states of the actor kind `kind` at the window's beginning. `results`: the raw probe
    results in the window that the node still had, newest first.
    """
    size_bytes: int
    plain_bytes: int
    """The size when decompressed."""
    sha256: str
    """Of the compressed bytes, in hexadecimal digits."""
    first: str = ""
    """For `log`: the position of the first entry, and of the `last` of `count`."""
    last: str = ""
    count: int = 0
    kind: str = ""
    format: int = 0
    """For `states`: the format of a snapshot of the kind's only shard."""


_Most = msgspec.Meta(max_length=MOST_ENTRIES)
_Numbers = Annotated[list[int], _Most]
_Results = Annotated[list[RawResult], _Most]


class _Texts(msgspec.Struct, frozen=True, array_like=True):
    """A column of texts: the different ones, and the index of each entry's text among them."""

    texts: Annotated[list[str], _Most]
    indexes: _Numbers


class _Columns(msgspec.Struct, frozen=True, array_like=True):
    """The entries of a part, by field. `milliseconds` and `n`: each as the difference to the one before, from 0.

    `causes`: a text, or the number k if the cause is the entry k places earlier in the part.
    """

    milliseconds: _Numbers
    n: _Numbers
    types: _Texts
    entities: _Texts
    subjects: _Texts
    actors: _Texts
    causes: Annotated[list[int | str], _Most]
    data: Annotated[list[bytes], _Most]


_decoder = msgspec.msgpack.Decoder(_Columns)


def encode_entries(entries: Sequence[Entry]) -> tuple[Part, bytes]:
    """Encode a part with these entries, at least one, and describe it."""
    places = {str(entry.position): place for place, entry in enumerate(entries)}
    columns = _Columns(
        _differences([entry.position.milliseconds for entry in entries]),
        _differences([entry.position.n for entry in entries]),
        _texts([entry.type for entry in entries]),
        _texts([entry.entity for entry in entries]),
        _texts([entry.subject for entry in entries]),
        _texts([entry.actor for entry in entries]),
        [place - places[one.cause] if one.cause in places else one.cause for place, one in enumerate(entries)],
        [entry.data for entry in entries],
    )
    first, last = str(entries[0].position), str(entries[-1].position)
    return encode_part("log", msgspec.msgpack.encode(columns), first=first, last=last, count=len(entries))


def encode_part(what: What, plain: bytes, **about: Any) -> tuple[Part, bytes]:
    """Compress a part and describe it. `about` are further fields of the `Part`."""
    stored = zlib.compress(plain, 6)
    digest = hashlib.sha256(stored).hexdigest()
    return Part(what=what, size_bytes=len(stored), plain_bytes=len(plain), sha256=digest, **about), stored


def decode_entries(part: Part, stored: bytes) -> list[Entry]:
    """Decode a part of the log. Raises Unreadable."""
    plain = decode_part(part, stored, LARGEST_PART)
    try:
        found = list(_rows(_decoder.decode(plain)))
        for one in found:
            _check_entry(one)
    except (msgspec.DecodeError, ValueError, IndexError, RecursionError) as error:
        raise Unreadable(f"{_named(part)} is invalid: {error}") from error
    ends = (str(found[0].position), str(found[-1].position)) if found else ("", "")
    if len(found) != part.count or ends != (part.first, part.last) or not _ascending(found):
        raise Unreadable(
            f"{_named(part)} is invalid: found {len(found)} entries from {ends[0]} to {ends[1]}, not in order or not "
            "those that its manifest says"
        )
    return found


def encode_results(results: Iterable[RawResult]) -> Iterator[bytes]:
    """Yield the content of each part with raw probe results: plain msgpack, a list of maps, which is redacted and
    anonymised as such.
    """
    rest = iter(results)
    while some := list(islice(rest, RESULTS_IN_PART)):
        yield msgspec.msgpack.encode(some)


def decode_results(part: Part, stored: bytes) -> list[RawResult]:
    """Decode raw probe results. Raises Unreadable."""
    plain = decode_part(part, stored, LARGEST_PART)
    try:
        objects.check(plain, MOST_IN_RESULTS)
        return msgspec.msgpack.decode(plain, type=_Results)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{_named(part)} is invalid: {error}") from error


def decode_states(part: Part, stored: bytes) -> bytes:
    """Return the states in a part as they are encoded: a map from keys to maps. Raises Unreadable."""
    plain = decode_part(part, stored, LARGEST_STATES)
    try:
        objects.check(plain, MOST_IN_STATES)
        msgspec.msgpack.decode(plain, type=dict[str, dict[str, msgspec.Raw]])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{_named(part)} is invalid: {error}") from error
    return plain


def check(part: Part, stored: bytes) -> None:
    """Read a part that a writer made, as every reader does. Raises Unreadable if it exceeds a limit."""
    _READERS[part.what](part, stored)


_READERS: Mapping[str, Callable[[Part, bytes], object]] = {
    "log": decode_entries,
    "states": decode_states,
    "results": decode_results,
}


def _check_entry(entry: Entry) -> None:
    if time_of(entry) > LATEST:
        raise ValueError(f"entry {entry.position} is from {time_of(entry)} ms, expected at most {LATEST}")
    if len(entry.data) > LARGEST_ENTRY:
        raise ValueError(f"entry {entry.position} has {len(entry.data)} bytes, expected at most {LARGEST_ENTRY}")
    try:
        objects.check(entry.data, MOST_IN_ENTRY)
    except ValueError as error:
        raise ValueError(f"entry {entry.position}: {error}") from error


def decode_part(part: Part, stored: bytes, limit: int) -> bytes:
    """Check and decompress a part of at most `limit` bytes. Raises Unreadable."""
    if hashlib.sha256(stored).hexdigest() != part.sha256:
        raise Unreadable(f"altered: {_named(part)} does not have the SHA-256 in the manifest")
    if not 0 <= part.plain_bytes <= limit:
        raise Unreadable(f"{_named(part)} has {part.plain_bytes} bytes when decompressed, expected at most {limit}")
    stream = zlib.decompressobj()
    pieces, size, rest = [], 0, stored
    try:
        while rest and not stream.eof and size <= part.plain_bytes:
            pieces.append(stream.decompress(rest, _PIECE))
            size, rest = size + len(pieces[-1]), stream.unconsumed_tail
    except zlib.error as error:
        raise Unreadable(f"{_named(part)} cannot be decompressed: {error}") from error
    if size != part.plain_bytes or not stream.eof or stream.unused_data:
        raise Unreadable(f"{_named(part)} does not decompress to the {part.plain_bytes} bytes that the manifest says")
    return b"".join(pieces)


def _named(part: Part) -> str:
    if part.what == "log":
        return f"the part with entries {part.first} to {part.last}"
    return f"the states of {part.kind}" if part.what == "states" else f"the part with {part.what}"


def _rows(columns: _Columns) -> Iterator[Entry]:
    milliseconds = n = 0
    positions: list[Position] = []
    texts = [_column(one) for one in (columns.types, columns.entities, columns.subjects, columns.actors)]
    rows = zip(columns.milliseconds, columns.n, *texts, columns.causes, columns.data, strict=True)
    for further, more, type_, entity, subject, actor, cause, data in rows:
        milliseconds, n = milliseconds + further, n + more
        positions.append(Position(milliseconds, n))
        if isinstance(cause, str):
            named = cause
        elif 0 <= cause < len(positions):
            named = str(positions[-1 - cause])
        else:
            raise ValueError(f"an entry's cause is {cause} places before it")
        yield Entry(positions[-1], type_, entity, subject, actor, named, data)


def _ascending(entries: Sequence[Entry]) -> bool:
    return all(one.position < other.position for one, other in pairwise(entries))


def _column(one: _Texts) -> list[str]:
    if any(index < 0 for index in one.indexes):
        raise ValueError("a negative index")
    return [one.texts[index] for index in one.indexes]


def _texts(column: Sequence[str]) -> _Texts:
    known: dict[str, int] = {}
    indexes = [known.setdefault(text, len(known)) for text in column]
    return _Texts(list(known), indexes)


def _differences(numbers: Sequence[int]) -> list[int]:
    return [number - before for before, number in zip((0, *numbers), numbers, strict=False)]
