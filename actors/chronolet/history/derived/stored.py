"""The files in an archive that hold indexes and checkpoints.

Input: an `Archive`. Output: indexes, checkpoints and their summaries; `Unusable` for one that is missing, damaged,
foreign or outdated. Next: `reading`, `upkeep`, `history.archives`.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Mapping

from chronolet.history.derived import checkpoint as checkpoints
from chronolet.history.derived import index as indexes
from chronolet.history.derived.checkpoint import Checkpoint, Summary, Version
from chronolet.history.derived.index import ArchiveIndex
from chronolet.history.derived.sealed import LARGEST_BODY, SUMMARY_BYTES, Unusable, expect
from chronolet.kernel.log.archive import Archive, Part
from chronolet_schemas.envelope import Position

_READ = 1024 * 1024
_ADLER = 4
"""The bytes of the checksum at the end of an archive file."""


class Stored:
    """The indexes and checkpoints next to the files of an archive. The names are listed once, at the first question."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._names: frozenset[str] | None = None
        self._files: frozenset[str] | None = None

    # -- indexes -------------------------------------------------------------------------------------------------
    def index(self, part: Part) -> ArchiveIndex:
        """Return the index of an archive file. Raises Unusable; OSError if the files cannot be listed."""
        found = indexes.decode(self._content(indexes.name_of(part.name)))
        indexes.expect(found.summary, self.archive.node, self.archive.run, part)
        return found

    def index_summary(self, part: Part) -> indexes.Summary:
        """Return the summary of an archive file's index. Raises like `index`."""
        found = indexes.decode_summary(self._start(indexes.name_of(part.name)))
        indexes.expect(found, self.archive.node, self.archive.run, part)
        return found

    def own_last(self, part: Part) -> Position | None:
        """Return the position of an archive file's last entry that no other program has written; None if there is
        none. Raises like `index`.
        """
        own = self.index_summary(part).own_last
        return None if own is None else Position(*own)

    def sound_index(self, part: Part) -> None:
        """Raise Unusable unless an archive file has an index, and ends as the index says: another release writes other
        blocks. Raises OSError as `index`.
        """
        last = self.index(part).blocks[-1]
        try:
            end = self.archive.storage.part(part.name, last.offset, last.size + _ADLER + 1)
        except OSError as error:
            raise Unusable(f"cannot be compared with the file: {error}") from error
        if len(end) != last.size + _ADLER or zlib.crc32(end[: last.size]) != last.crc:
            raise Unusable("does not describe the file as it is")

    def put_index(self, found: ArchiveIndex) -> str:
        """Store the index of an archive file; return its name. Raises OSError."""
        return self._put(indexes.name_of(found.summary.file), indexes.encode(found))

    # -- checkpoints ---------------------------------------------------------------------------------------------
    def positions(self) -> list[Position]:
        """Return the positions of all checkpoint files, newest first. Raises OSError."""
        return sorted(filter(None, map(checkpoints.position_of, self._listed())), reverse=True)

    def newest(self, upto: Position, kinds: Mapping[str, Version]) -> dict[str, Checkpoint]:
        """Return the newest checkpoint up to a position that has a kind's states, for each of these kinds that is in
        one. Raises OSError if the files cannot be listed.
        """
        found: dict[str, Checkpoint] = {}
        for position in self.positions():
            if found.keys() >= kinds.keys():
                break
            if position <= upto:
                with contextlib.suppress(Unusable):
                    has = self._summary(position).kinds
                    usable = [name for name, one in kinds.items() if one.code and has.get(name) == one]
                    if new := [name for name in usable if name not in found]:
                        found |= dict.fromkeys(new, self.checkpoint(position))
        return found

    def checkpoint(self, position: Position) -> Checkpoint:
        """Return the checkpoint at this position, of whichever kinds. Raises Unusable; OSError as `newest`."""
        return checkpoints.decode(self._content(checkpoints.name_of(position)))

    def expect_checkpoint(self, position: Position, kinds: Mapping[str, Version]) -> None:
        """Raise Unusable unless there is a checkpoint at this position with the states of these kinds, as the same code
        would fold them; it may have more.
        """
        has = self._summary(position).kinds
        expect(**{kind: (has.get(kind), version) for kind, version in kinds.items()})

    def _summary(self, position: Position) -> Summary:
        """Return the summary of a checkpoint of this log. Raises Unusable."""
        summary = checkpoints.decode_summary(self._start(checkpoints.name_of(position)))
        expect(
            format=(summary.format, checkpoints.FORMAT),
            node=(summary.node, self.archive.node),
            run=(summary.run, self.archive.run),
            position=(Position(*summary.position), position),
        )
        if summary.file not in self._needed():
            raise Unusable(f"is of the archive file {summary.file}, which is not there or not needed")
        return summary

    def put_checkpoint(self, position: Position, content: bytes) -> str:
        """Store a checkpoint; return its name. Raises OSError."""
        return self._put(checkpoints.name_of(position), content)

    def _needed(self) -> frozenset[str]:
        if self._files is None:
            self._files = frozenset(part.name for part in self.archive.needed())
        return self._files

    # -- files ---------------------------------------------------------------------------------------------------
    def _listed(self) -> frozenset[str]:
        if self._names is None:
            self._names = frozenset(self.archive.storage.names())
        return self._names

    def _start(self, name: str) -> bytes:
        self._expect_listed(name)
        try:
            return self.archive.storage.part(name, 0, SUMMARY_BYTES)
        except OSError as error:
            raise Unusable(f"cannot be read: {error}") from error

    def _content(self, name: str) -> bytes:
        self._expect_listed(name)
        try:
            with self.archive.storage.opened(name) as file:
                content = bytearray()
                while (read := file.read(_READ)) and len(content) <= LARGEST_BODY:
                    content += read
        except OSError as error:
            raise Unusable(f"cannot be read: {error}") from error
        if read:
            raise Unusable(f"is larger than {LARGEST_BODY} bytes")
        return bytes(content)

    def _expect_listed(self, name: str) -> None:
        if name not in self._listed():
            raise Unusable("is missing")

    def _put(self, name: str, content: bytes) -> str:
        self.archive.storage.put(name, content)
        if self._names is not None:
            self._names |= {name}
        return name
