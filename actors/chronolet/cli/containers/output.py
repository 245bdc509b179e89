"""Writes the output of containers: limited, prefixed or merged.

Input: chunks of bytes. Output: the bytes on standard output, whichever stream the container wrote them to, as in
kubectl. Next: `logs`.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

Pieces = Iterable[bytes]


def limited(pieces: Pieces, limit: int) -> Iterator[bytes]:
    """Yield the first `limit` bytes."""
    left = limit
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def prefixed(pieces: Pieces, prefix: bytes) -> Iterator[bytes]:
    """Yield each line with the prefix, as soon as the line is complete."""
    for line in _lines(pieces):
        yield prefix + line


def _lines(pieces: Pieces) -> Iterator[bytes]:
    """Yield the lines, each with its newline; the last line may have none."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def write(pieces: Pieces) -> None:
    """Write to standard output and flush after each chunk."""
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def write_together(sources: Sequence[Callable[[], Pieces]]) -> Iterator[Exception]:
    """Write the lines of all sources as they arrive, with one thread reading each source. Yield the sources' errors."""
    lines: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()

    def read(source: Callable[[], Pieces]) -> None:
        try:
            for line in _lines(source()):
                lines.put(line)
        except Exception as error:  # noqa: BLE001 - passed unchanged to the reading thread
            lines.put(error)
        finally:
            lines.put(None)

    for source in sources:
        threading.Thread(target=read, args=(source,), name="logs", daemon=True).start()
    left = len(sources)
    while left:
        found = lines.get()
        if found is None:
            left -= 1
        elif isinstance(found, bytes):
            write((found,))
        else:
            yield found
