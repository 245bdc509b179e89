"""Reads a bundle, which may come from anybody: every size is checked before memory is used, and every byte.

Input: a seekable binary file. Output: the manifest, entries and states; `Unreadable`, with the file's name, for
anything else. A part is decompressed when it is needed, and a few are kept. Next: `store`, which commands read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from chronolet.history.bundle import format as bundle_format
from chronolet.history.bundle import parts
from chronolet.history.bundle.format import Manifest
from chronolet.history.bundle.parts import Part, Unreadable
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.prober import RawResult

_KEPT_PARTS = 8


class Bundle:
    """An open bundle. Raises Unreadable if the file is none; each part is checked when it is first read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self._file = file
        with self._named():
            self.manifest = self._manifest()
        sizes = (len(bundle_format.MAGIC), *(part.size_bytes for part in self.manifest.parts))
        self._offsets = dict(zip(map(id, self.manifest.parts), accumulate(sizes), strict=False))
        self._log = self.manifest.of("log")
        self._lasts = [Position.parse(part.last) for part in self._log]
        self._entries = lru_cache(_KEPT_PARTS)(self._decoded)

    def entries(self, after: Position = START, upto: Position | None = None) -> Iterator[Entry]:
        """Yield the entries after a position (and not after `upto`), oldest first. Raises Unreadable."""
        for index in range(bisect_left(self._lasts, after), len(self._log)):
            for entry in self._entries(index):
                if upto is not None and entry.position > upto:
                    return
                if entry.position > after:
                    yield entry

    def at(self, position: Position) -> Entry | None:
        """Return the entry at this position; None if the bundle has none there."""
        before = Position(position.milliseconds, position.n - 1)
        return next((one for one in self.entries(before, position) if one.position == position), None)

    def states(self) -> Iterator[tuple[Part, bytes]]:
        """Yield the states of each actor kind at the window's beginning, as encoded for a snapshot."""
        for part in self.manifest.of("states"):
            yield part, self.states_of(part)

    def states_of(self, part: Part) -> bytes:
        """Return the states in this part. Raises Unreadable."""
        with self._named():
            return parts.decode_states(part, self._stored(part))

    def results(self) -> Iterator[RawResult]:
        """Yield the raw probe results, newest first. Raises Unreadable."""
        for part in self.manifest.of("results"):
            with self._named():
                found = parts.decode_results(part, self._stored(part))
            yield from found

    def check(self) -> None:
        """Read everything. Raises Unreadable if any part is damaged."""
        for index in range(len(self._log)):
            self._decoded(index)
        for _ in (*self.states(), *self.results()):
            pass

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _decoded(self, index: int) -> list[Entry]:
        with self._named():
            return parts.decode_entries(self._log[index], self._stored(self._log[index]))

    def _stored(self, part: Part) -> bytes:
        self._file.seek(self._offsets[id(part)])
        return self._file.read(part.size_bytes)

    def _manifest(self) -> Manifest:
        bundle_format.check_magic(self._file.read(bundle_format.MAGIC_LIMIT))
        size = self._file.seek(0, 2)
        room = size - len(bundle_format.MAGIC) - bundle_format.TRAILER_BYTES
        if room < 0:
            raise Unreadable(f"truncated: it has {size} bytes")
        self._file.seek(size - bundle_format.TRAILER_BYTES)
        length, digest = bundle_format.manifest_size(self._file.read())
        if length > room:
            raise Unreadable("truncated or altered: its manifest is longer than the file")
        self._file.seek(size - bundle_format.TRAILER_BYTES - length)
        return bundle_format.decode_manifest(self._file.read(length), digest, room - length)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Put the file's name in front of what is wrong with it."""
        try:
            yield
        except Unreadable as error:
            raise Unreadable(f"{self.name}: {error}") from error
        except OSError as error:
            raise Unreadable(f"{self.name}: cannot be read: {error}") from error


def opened(path: Path) -> Bundle:
    """Open a bundle. Raises Unreadable."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return Bundle(file, str(path))
    except BaseException:
        file.close()
        raise
