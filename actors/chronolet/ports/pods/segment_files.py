"""The port to the archive files of segments, `AFTER..LAST.probes`, of one run of one node.

Input: none. Output: the Protocol `SegmentFiles`. Next: `keeper`, which writes and deletes files; `history`, which reads
them; `adapters.probes.results.segment_files`, which implements it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from chronolet.kernel.log.archive_storage import ArchiveStorage
from chronolet.rules.probes.segments.file_format import Header
from chronolet.rules.probes.segments.file_names import FilePart
from chronolet.rules.probes.segments.segment import Segment
from chronolet_schemas.envelope import Position


class WrittenFile(Struct, frozen=True):
    """One complete file."""

    name: str
    outcomes: int
    size_bytes: int
    sha256: str


class SegmentFiles(Protocol):
    """The files of one run of one node. Every method raises OSError if the storage cannot be used."""

    @property
    def storage(self) -> ArchiveStorage:
        """Where the files are."""

    def parts(self) -> list[FilePart]:
        """Return the files, oldest first."""

    def write(self, after: Position, last: Position, segments: Sequence[Segment]) -> WrittenFile:
        """Write a file, which is stored durably on return. The same segments give the same bytes."""

    def read_whole(self, name: str) -> WrittenFile:
        """Read an existing file to its end. Raises ArchiveDamaged."""

    def segments(self, name: str) -> Iterator[Segment]:
        """Yield a file's segments, checked against its header. Raises ArchiveDamaged at the first damage."""

    def header(self, name: str) -> Header:
        """Return a file's header. Raises ArchiveDamaged if it cannot be read."""

    def accept_loss(self, after: Position, last: Position) -> None:
        """Record that this part is lost, so that it is no longer missing."""

    def accepted_losses(self) -> list[FilePart]:
        """Return the parts whose loss was accepted, oldest first."""

    def missing(self, deleted: Position, archived: Position) -> list[tuple[Position, Position]]:
        """Return the parts of the stream, as AFTER and LAST, that no file has, although they were archived up to the id
        `archived`, and files were deleted only up to `deleted`.
        """
