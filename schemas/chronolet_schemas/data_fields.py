"""Adds fields of the kernel to an entry's data, a msgpack map, and takes them out again. Pure.

The names of these fields begin with `_`; classes of events ignore them. `_in`, which says what an event was decided
from, is written by the kernel's `recording`; `_time` is added behind it by the server (`times`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

INPUT, TIME = "_in", "_time"

TIME_MARK = b"\xa5_time\xcf"
"""The name of `_time` and the type of its value, an unsigned integer of 64 bits, in msgpack."""
TIME_LENGTH = len(TIME_MARK) + 8
"""Length of the field `_time` in bytes."""

_INPUT_NAME = b"\xa3_in"
_FIXMAP, _LARGEST_FIXMAP, _MAP16 = 0x80, 0x8F, 0xDE
_MOST_FIELDS = 0xFFFF

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Parts(NamedTuple):
    """An entry's data: the event's own map, as it was encoded, and the value of `_in`."""

    plain: bytes
    fields: dict[str, Any]
    """The event's own map, decoded."""
    recorded: bool
    """Whether the data has the field `_in`."""
    value: Any
    """The value of `_in`; None if the data does not have it."""


def with_input(data: bytes, value: Any) -> bytes:
    """Return an event's data with the field `_in` at its end; unchanged if the data has no room for it."""
    return appended(data, _INPUT_NAME + _encode(value))


def appended(data: bytes, field: bytes) -> bytes:
    """Return a map with one more field, which is already encoded. Unchanged if the data is not a map, or is a map with
    too many fields for one more.
    """
    changed = _with_count(data, +1)
    return data if changed is None else changed + field


def parts(data: bytes) -> Parts:
    """Split an entry's data. Raises ValueError or msgspec.DecodeError if it is not such a map."""
    found = _decode(data)
    if not isinstance(found, dict):
        raise ValueError(f"an entry's data is of type {type(found).__name__}, expected a map")  # noqa: TRY004
    plain = data
    if TIME in found:
        plain = _without(plain, TIME_LENGTH)
        del found[TIME]
    if INPUT not in found:
        return Parts(plain, found, recorded=False, value=None)
    value = found.pop(INPUT)
    return Parts(_without(plain, len(_INPUT_NAME) + len(_encode(value))), found, recorded=True, value=value)


def _without(data: bytes, length: int) -> bytes:
    return (_with_count(data, -1) or b"")[:-length]


def _with_count(data: bytes, more: int) -> bytes | None:
    """Return the map with another number of fields in its head; None if it is not a map, or has no such number."""
    head = data[0] if data else 0
    if _FIXMAP <= head <= _LARGEST_FIXMAP:
        count, begin = head - _FIXMAP, 1
    elif head == _MAP16 and len(data) > 2:  # noqa: PLR2004 - the length of such a head
        count, begin = int.from_bytes(data[1:3], "big"), 3
    else:
        return None
    count += more
    if not 0 <= count <= _MOST_FIELDS:
        return None
    if count <= _LARGEST_FIXMAP - _FIXMAP:
        return bytes([_FIXMAP + count]) + data[begin:]
    return bytes([_MAP16]) + count.to_bytes(2, "big") + data[begin:]
