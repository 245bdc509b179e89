"""Archive files of segments: `AFTER..LAST.probes`, next to the log's (docs/log-format.md specifies them).

Input: an archive; merged segments. Output: files, and the segments read back. AFTER and LAST are ids of the stream: a
file has the segments after the one and up to the other, so AFTER is LAST of the file before. An empty file
`AFTER..LAST.probes.lost` records that an operator has accepted the loss of this part. Next: `keeper`; `history`.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Generator, Iterator, Sequence

import msgpack

from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.log.archive_storage import ArchiveStorage
from chronolet.ports.pods.segment_files import WrittenFile
from chronolet.rules.probes.segments.file_format import FileFormat, Header
from chronolet.rules.probes.segments.file_names import SUFFIX, FilePart, part_of, uncovered
from chronolet.rules.probes.segments.segment import Segment
from chronolet_schemas.envelope import START, Position

_LOST = ".lost"
_CHUNK = 64 * 1024


class ArchivedSegments:
    """Implements `SegmentFiles`."""

    def __init__(self, archive: Archive) -> None:
        self._storage = archive.storage
        self._format = FileFormat(archive.node, archive.run)

    @property
    def storage(self) -> ArchiveStorage:
        """See `SegmentFiles`."""
        return self._storage

    def parts(self) -> list[FilePart]:
        """See `SegmentFiles`."""
        return sorted(part for name in self._storage.names() if (part := part_of(name)) is not None)

    def write(self, after: Position, last: Position, segments: Sequence[Segment]) -> WrittenFile:
        """See `SegmentFiles`."""
        name = f"{after}..{last}{SUFFIX}"
        content = self._format.packed(FilePart(after, last, name), segments)
        self._storage.put(name, content)
        outcomes = sum(segment.outcomes for segment in segments)
        return WrittenFile(name, outcomes, len(content), hashlib.sha256(content).hexdigest())

    def read_whole(self, name: str) -> WrittenFile:
        """See `SegmentFiles`."""
        outcomes = sum(segment.outcomes for segment in self.segments(name))
        content = b"".join(self._content(name))
        return WrittenFile(name, outcomes, len(content), hashlib.sha256(content).hexdigest())

    def segments(self, name: str) -> Iterator[Segment]:
        """See `SegmentFiles`."""
        with self._damage(name):
            yield from self._format.segments(_part(name), self._content(name))

    def header(self, name: str) -> Header:
        """See `SegmentFiles`."""
        with self._damage(name), contextlib.closing(self._content(name)) as content:
            return self._format.header(_part(name), content)

    def accept_loss(self, after: Position, last: Position) -> None:
        """See `SegmentFiles`."""
        self._storage.put(f"{after}..{last}{SUFFIX}{_LOST}", b"")

    def accepted_losses(self) -> list[FilePart]:
        """See `SegmentFiles`."""
        names = [name for name in self._storage.names() if name.endswith(_LOST)]
        found = [(name, part_of(name.removesuffix(_LOST))) for name in names]
        return sorted(part._replace(name=name) for name, part in found if part is not None)

    def missing(self, deleted: Position, archived: Position) -> list[tuple[Position, Position]]:
        """See `SegmentFiles`."""
        return uncovered([*self.parts(), *self.accepted_losses()], deleted, archived)

    def _content(self, name: str) -> Generator[bytes, None, None]:
        with self._storage.opened(name) as file:
            yield from iter(lambda: file.read(_CHUNK), b"")

    @contextlib.contextmanager
    def _damage(self, name: str) -> Iterator[None]:
        """Translate errors of the decoders, with the file's place."""
        try:
            yield
        except (zlib.error, ValueError, msgpack.UnpackException) as error:
            raise ArchiveDamaged(f"{self._storage.place(name)}: {error or type(error).__name__}") from error


def _part(name: str) -> FilePart:
    """Return the part that the file's header must have."""
    return part_of(name) or FilePart(START, START, name)
