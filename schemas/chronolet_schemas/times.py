"""Determines when an entry of the log was written.

An entry's position contains that time, unless the log's positions were ahead of the server's clock. Positions never go
back: if the clock was once ahead, their time stays at its highest value until real time has caught up. The server then
adds the field `_time` to the entry's data, as the last field (docs/adr/0042).

Input: an entry, or its position and data. Output: milliseconds since the epoch. Next: everything that shows or compares
times of entries. Use positions for the order of entries, and only these functions for their times.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet_schemas.data_fields import TIME_LENGTH, TIME_MARK, appended
from chronolet_schemas.envelope import Entry, Position

AHEAD_MILLISECONDS = 1_000
"""By how much positions must be ahead for an entry to have the field."""


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
    if data[-TIME_LENGTH:-8] != TIME_MARK:
        return position.milliseconds
    return int.from_bytes(data[-8:], "big")


def with_time(data: bytes, milliseconds: int) -> bytes:
    """Return an entry's data, a msgpack map, with the field `_time` added; unchanged if the data is not a map, or is a
    map with too many fields for one more.

    The server does the same in `steps.lua`; this function is for the in-memory store.
    """
    return appended(data, TIME_MARK + milliseconds.to_bytes(8, "big"))
