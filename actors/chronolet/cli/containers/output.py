"""Output of containers on its way to the reader: cut off, prefixed, several at once.

Comes in: pieces of bytes. Goes out: the same on standard output; both of a container's streams, as kubectl shows them.
Next: `logs`.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

Pieces = Iterable[bytes]


def limited(pieces: Pieces, limit: int) -> Iterator[bytes]:
    """The first bytes, as many as that."""
    left = limit
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def prefixed(pieces: Pieces, prefix: bytes) -> Iterator[bytes]:
    """Each line behind the prefix, as soon as it is whole."""
    for line in _lines(pieces):
        yield prefix + line


def _lines(pieces: Pieces) -> Iterator[bytes]:
    """With their ends; the last may have none."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def write(pieces: Pieces) -> None:
    """To standard output, each at once."""
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def write_together(sources: Sequence[Callable[[], Pieces]]) -> Iterator[Exception]:
    """The lines of all sources as they come; what a source failed with is told when it has failed."""
    lines: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()

    def read(source: Callable[[], Pieces]) -> None:
        try:
            for line in _lines(source()):
                lines.put(line)
        except Exception as error:  # noqa: BLE001 - handed to the reader's thread as it is
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
