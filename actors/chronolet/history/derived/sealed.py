"""Files that consist of a checked summary and a body, as indexes and checkpoints do. Pure.

Input: a first line, a summary, a body. Output: the file's content, and back. The content is the first line, the length
and CRC-32 of the summary (a msgpack map), the summary, the body. Next: `index`, `checkpoint`.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, TypeVar

import msgspec

S = TypeVar("S")

SUMMARY_BYTES = 4096
"""The beginning of a file that contains its summary, as far as it is not longer than that."""
LARGEST_BODY = 256 * 1024 * 1024
"""The most bytes of a decompressed body: that of the largest usual file is a hundredth of it."""
_LARGEST_SUMMARY = 1024 * 1024
_SIZES = struct.Struct("<II")


class Unusable(Exception):  # noqa: N818 - the condition's name
    """An index or checkpoint is missing, damaged, foreign or outdated. The text says what is wrong with it."""


def sealed(line: bytes, summary: Any, body: bytes) -> bytes:
    """Return the content of a file."""
    encoded = msgspec.msgpack.encode(summary)
    return line + _SIZES.pack(len(encoded), zlib.crc32(encoded)) + encoded + body


def opened(line: bytes, content: bytes, summary: type[S]) -> tuple[S, int]:
    """Return the summary of a file, and where its body begins, from the file's beginning. Raises Unusable."""
    begin = len(line) + _SIZES.size
    if not content.startswith(line) or len(content) < begin:
        raise Unusable(f"does not begin with {line.decode().strip()!r}")
    size, crc = _SIZES.unpack_from(content, len(line))
    if size > _LARGEST_SUMMARY:
        raise Unusable(f"has a summary of {size} bytes, expected at most {_LARGEST_SUMMARY}")
    encoded = content[begin : begin + size]
    if len(encoded) != size or zlib.crc32(encoded) != crc:
        raise Unusable("is truncated or altered")
    return unpacked(encoded, summary, "an unreadable summary"), begin + size


def unpacked(encoded: bytes, type_: type[S], what: str) -> S:
    """Decode msgpack, whatever a program has written there. Raises Unusable, with `what` in its text."""
    try:
        return msgspec.msgpack.decode(encoded, type=type_)
    # Values may be nested too deeply, and the length of a list may be a lie.
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise Unusable(f"has {what}: {error or type(error).__name__}") from error


def decompressed(encoded: bytes, what: str) -> bytes:
    """Decompress a whole zlib stream of at most `LARGEST_BODY`. Raises Unusable, with `what` in its text."""
    decompressor = zlib.decompressobj()
    try:
        plain = decompressor.decompress(encoded, LARGEST_BODY)
    except (zlib.error, MemoryError) as error:
        raise Unusable(f"has {what}: {error or type(error).__name__}") from error
    if not decompressor.eof:
        raise Unusable(f"has {what}: truncated, or larger than {LARGEST_BODY} bytes")
    return plain


def expect(**pairs: tuple[object, object]) -> None:
    """Raise Unusable if the two values of a pair, found and expected, differ."""
    for name, (found, expected) in pairs.items():
        if found != expected:
            raise Unusable(f"has {name} {found!r}, expected {expected!r}")
