"""Stores values column by column, and packs columns for the page. Pure.

Input: values. Output: `Part`: a named piece of compressed data, as text. Next: `tables`, `entry_columns`.

Columns are typed arrays in little-endian order, which a browser uses as they are. Equal and similar values next to each
other are what zlib compresses best, so a column costs little more than its changes.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from array import array
from collections.abc import Hashable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

Type = Literal["json", "text", "u8", "u32", "f64"]
_CODES: dict[str, str] = {"u8": "B", "u32": "I", "f64": "d"}
_LEVEL = 9

Value = TypeVar("Value", bound=Hashable)


class Part(NamedTuple):
    """A piece of the page's data. `data` is base64 of a zlib stream."""

    name: str
    type: Type
    data: str


def packed(name: str, type_: Type, data: bytes) -> Part:
    """Compress a piece of data."""
    return Part(name, type_, base64.b64encode(zlib.compress(data, _LEVEL)).decode("ascii"))


def packed_json(name: str, value: Any) -> Part:
    """Pack a value as JSON."""
    return packed(name, "json", json.dumps(value, separators=(",", ":")).encode("ascii"))


class Column:
    """A growing list of numbers of one type: `u8` and `u32` are unsigned integers, `f64` are integers below 2^53."""

    def __init__(self, name: str, type_: Literal["u8", "u32", "f64"]) -> None:
        self._name = name
        self._type: Literal["u8", "u32", "f64"] = type_
        self._values = array(_CODES[type_])

    def add(self, value: int) -> None:
        """Append a number."""
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> int:
        return int(self._values[index])

    def part(self, order: Sequence[int] | None = None) -> Part:
        """Pack the column. `order`: the indexes of the values in their final order; None to keep them in order."""
        values = self._values if order is None else array(self._values.typecode, map(self._values.__getitem__, order))
        if sys.byteorder == "big":
            values = values[:]
            values.byteswap()
        return packed(self._name, self._type, values.tobytes())


class Differences:
    """A column that stores the difference of each number to the one before; the first to 0."""

    def __init__(self, name: str) -> None:
        self._column = Column(name, "f64")
        self._last = 0

    def add(self, value: int) -> None:
        """Append a number."""
        self._column.add(value - self._last)
        self._last = value

    def part(self) -> Part:
        """Pack the differences."""
        return self._column.part()


class Dictionary(Generic[Value]):
    """Numbers distinct values in order of first use, so that a column has small numbers instead of texts."""

    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}

    def number(self, value: Value) -> int:
        """Return the value's number; the next one if the value is new."""
        return self._numbers.setdefault(value, len(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    def values(self) -> list[Value]:
        """Return the values; the index of each is its number."""
        return list(self._numbers)
