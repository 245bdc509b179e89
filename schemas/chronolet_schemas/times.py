"""Determines when an entry of the log was written.

An entry's position contains that time, unless the log's positions were ahead of the server's clock. Positions never go
back: if the clock was once ahead, their time stays at its highest value until real time has caught up. The server then
adds the field `_time` to the entry's data, as the last field (docs/adr/0042).

Input: an entry, or its position and data. Output: milliseconds since the epoch. Next: everything that shows or compares
times of entries. Use positions for the order of entries, and only these functions for their times.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet_schemas.envelope import Entry, Position

FIELD = "_time"
AHEAD_MILLISECONDS = 1_000
"""By how much positions must be ahead for an entry to have the field."""

_MARK = b"\xa5_time\xcf"
"""The field's name and the type of its value, an unsigned integer of 64 bits, in msgpack."""
_LENGTH = len(_MARK) + 8


class Stamp(NamedTuple):
    """The position of an entry in the log, and the time at which it was written."""

    position: Position
    milliseconds: int


def stamp_of(entry: Entry) -> Stamp:
    """Return the entry's position and time."""
    return Stamp(entry.position, time_of(entry))


def time_of(entry: Entry) -> int:
    """Return when the entry was written."""
    return time_at(entry.position, entry.data)


def time_at(position: Position, data: bytes) -> int:
    """Return when the entry with this position and data was written."""
    if data[-_LENGTH:-8] != _MARK:
        return position.milliseconds
    return int.from_bytes(data[-8:], "big")


def with_time(data: bytes, milliseconds: int) -> bytes:
    """Return an entry's data, a msgpack map, with the field `_time` added; unchanged if the data is not a map, or is a
    map with too many fields for one more.

    The server does the same in `steps.lua`; this function is for the in-memory store.
    """
    head, field = data[:1], _MARK + milliseconds.to_bytes(8, "big")
    if b"\x80" <= head < b"\x8f":
        return bytes([data[0] + 1]) + data[1:] + field
    if head == b"\x8f":
        return b"\xde\x00\x10" + data[1:] + field
    count = int.from_bytes(data[1:3], "big")
    if data[:1] == b"\xde" and len(data) >= 3 and count < 0xFFFF:  # noqa: PLR2004 - the head of a map, its largest size
        return b"\xde" + (count + 1).to_bytes(2, "big") + data[3:] + field
    return data
