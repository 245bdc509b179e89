"""Bounds what decoding a msgpack value costs, before it is decoded: an empty map of one byte takes 64 in memory.

Input: encoded data of any origin. Output: nothing, or ValueError. Pure. Next: whatever decodes it.
"""

from __future__ import annotations

from typing import Final

LEAST_COUNTED = 0x80
"""Objects that take memory of their own begin with a byte of at least this value; others are shared small numbers."""
_HIGH: Final = bytes(range(LEAST_COUNTED, 256))
_LENGTHS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the length that follows: of bytes, extensions and texts."""
_FIXED: Final = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8} | {
    0xD4 + power: 1 + 2**power for power in range(5)
}
"""Bytes that follow: of numbers and small extensions."""
_EXTENSIONS: Final = frozenset({0xC7, 0xC8, 0xC9})
_COUNTS: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""Bytes of the count that follows: of arrays and maps."""


def check(data: bytes, most: int) -> None:
    """Raise ValueError if the data has more than `most` objects that take memory of their own."""
    if len(data) - len(data.translate(None, _HIGH)) <= most:
        return  # the usual case, for which no loop is needed: there are no more such bytes
    at = found = 0
    while at < len(data):
        head = data[at]
        found += head >= LEAST_COUNTED
        if found > most:
            raise ValueError(f"it has more than {most} values, within {len(data)} bytes")
        at += 1 + _following(data, at, head)


def _following(data: bytes, at: int, head: int) -> int:
    """Return the number of bytes between the head of a value and the next head."""
    if 0xA0 <= head <= 0xBF:  # noqa: PLR2004 - a short text, see the format
        return head - 0xA0
    if head in _LENGTHS:
        size = _LENGTHS[head]
        return size + (head in _EXTENSIONS) + int.from_bytes(data[at + 1 : at + 1 + size], "big")
    return _FIXED.get(head) or _COUNTS.get(head, 0)
