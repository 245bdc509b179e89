"""Writes a bundle to a stream, which need not be seekable: entries in their order, then the manifest.

Input: states at the window's beginning, entries, and what describes them. Output: the bytes of a file; `Unwritable` if
it would exceed a limit of readers: all that is written is read first. Next: `reader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from chronolet.history.bundle import format as bundle_format
from chronolet.history.bundle import parts
from chronolet.history.bundle.format import Manifest
from chronolet.history.bundle.parts import Part, Unreadable
from chronolet_schemas.envelope import Entry

_ADVICE: Mapping[str, str] = {
    "log": "save a window without that, with --from and --to",
    "states": "save the log from its beginning, which needs no states, without --from",
    "results": "save a shorter window, with --from and --to",
}


class Writable(Protocol):
    """The part of a binary file that is needed."""

    def write(self, data: bytes, /) -> object:
        """Write all of the data."""


class Unwritable(Exception):  # noqa: N818 - the condition's name
    """The bundle would be one that every reader refuses. The text says what exceeds which limit, and what to do."""


class BundleWriter:
    """Writes one bundle: `states` for each kind, `entries` once, then `finish`. Each of them may raise Unwritable."""

    def __init__(self, stream: Writable) -> None:
        self._stream = stream
        self._parts: list[Part] = []
        stream.write(bundle_format.MAGIC)

    def states(self, kind: str, format_: int, states: bytes) -> None:
        """Add the states of an actor kind at the window's beginning, as the snapshot of the kind's only shard."""
        self._add(*parts.encode_part("states", states, kind=kind, format=format_))

    def results(self, results: bytes) -> None:
        """Add raw probe results, some of those encoded by `parts.encode_results`."""
        self._add(*parts.encode_part("results", results))

    def entries(self, entries: Iterable[Entry]) -> None:
        """Add the entries, in their order."""
        pending: list[Entry] = []
        size = 0
        for entry in entries:
            pending.append(entry)
            size += len(entry.data) + len(entry.entity) + len(entry.subject)
            if len(pending) >= parts.ENTRIES_IN_PART or size >= parts.BYTES_IN_PART:
                self._add(*parts.encode_entries(pending))
                pending, size = [], 0
        if pending:
            self._add(*parts.encode_entries(pending))

    def finish(self, about: Manifest) -> Manifest:
        """Write the manifest, completed with what was written, and return it. Raises ValueError if nothing was."""
        log = [part for part in self._parts if part.what == "log"]
        if not log:
            raise ValueError("a bundle needs at least one entry")
        count = sum(part.count for part in log)
        whole = msgspec.structs.replace(about, parts=tuple(self._parts), count=count, ends=log[-1].last)
        text = bundle_format.encode_manifest(whole)
        try:
            bundle_format.decode_end(text, sum(part.size_bytes for part in self._parts))
        except Unreadable as error:
            raise Unwritable(f"{error}; {_ADVICE['results']}") from error
        self._stream.write(text)
        return whole

    def _add(self, part: Part, stored: bytes) -> None:
        try:
            self.check(part, stored)
        except Unreadable as error:
            raise Unwritable(f"{error}; {_ADVICE[part.what]}") from error
        self._parts.append(part)
        self._stream.write(stored)

    def check(self, part: Part, stored: bytes) -> None:
        """Read a part before it is written. Raises Unreadable."""
        parts.check(part, stored)
