"""Archive files of segments: `AFTER..LAST.probes`, next to the log's (docs/log-format.md specifies them).

Input: merged segments; an `ArchiveStorage`. Output: files, and the segments read back. AFTER and LAST are ids of the
stream: a file has the segments after the one and up to the other, so AFTER is LAST of the file before. A file is the
line `chronolet probes 1`, a msgpack map (format, node, run, after, last, outcomes, oldest, newest, heads) and a zlib
stream of msgpack maps, one for each segment. An empty file `AFTER..LAST.probes.lost` records that an operator has
accepted the loss of this part. Next: `keeper`, which writes and deletes files; `history`, which reads them.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
import msgspec
from msgspec import Struct

from chronolet.kernel.log.archive import ArchiveDamaged
from chronolet.kernel.log.archive_storage import ArchiveStorage, Readable
from chronolet.rules.probes.segments.encoding import FORMAT, SegmentDamaged, columns, from_plain
from chronolet.rules.probes.segments.file_names import SUFFIX, FilePart, part_of
from chronolet.rules.probes.segments.gaps import Head, head_of
from chronolet.rules.probes.segments.segment import Segment
from chronolet_schemas.envelope import START, Position

_LOST = ".lost"
_MAGIC = b"chronolet probes 1\n"
_CHUNK = 64 * 1024
_LARGEST_BYTES = 256 << 20


class Header(Struct, frozen=True):
    """What the header of a file tells about its segments. `oldest`, `newest`: when the first and the last of its probes
    began, in milliseconds since the epoch; both are 0 if there is none.
    """

    format: int
    node: str
    run: str
    after: str
    last: str
    outcomes: int
    oldest: int
    newest: int
    heads: tuple[Head, ...]


class WrittenFile(Struct, frozen=True):
    """One complete file."""

    name: str
    outcomes: int
    size_bytes: int
    sha256: str


class SegmentFiles:
    """The files of one run of one node. Every method raises OSError if the storage cannot be used."""

    def __init__(self, storage: ArchiveStorage, node: str, run: str) -> None:
        self.storage = storage
        self._node = node
        self._run = run

    def parts(self) -> list[FilePart]:
        """Return the files, oldest first."""
        return sorted(part for name in self.storage.names() if (part := part_of(name)) is not None)

    def write(self, after: Position, last: Position, segments: Sequence[Segment]) -> WrittenFile:
        """Write a file, which is stored durably on return. The same segments give the same bytes."""
        content = self._packed(after, last, segments)
        name = f"{after}..{last}{SUFFIX}"
        self.storage.put(name, content)
        outcomes = sum(segment.outcomes for segment in segments)
        return WrittenFile(name, outcomes, len(content), hashlib.sha256(content).hexdigest())

    def read_whole(self, name: str) -> WrittenFile:
        """Read an existing file to its end. Raises ArchiveDamaged."""
        outcomes = sum(segment.outcomes for segment in self.segments(name))
        with self.storage.opened(name) as file:
            content = b"".join(iter(lambda: file.read(_CHUNK), b""))
        return WrittenFile(name, outcomes, len(content), hashlib.sha256(content).hexdigest())

    def segments(self, name: str) -> Iterator[Segment]:
        """Yield a file's segments, checked against its header. Raises ArchiveDamaged at the first damage."""
        heads: list[Head] = []
        with self.storage.opened(name) as file, _damage(self.storage.place(name)):
            objects = _objects(file)
            header = self._checked(next(objects, None), name)
            for content in objects:
                segment = from_plain(content)
                heads.append(head_of(segment))
                yield segment
            if tuple(heads) != header.heads:
                raise SegmentDamaged(f"its {len(heads)} segments differ from the {len(header.heads)} in its header")

    def header(self, name: str) -> Header:
        """Return a file's header. Raises ArchiveDamaged if it cannot be read."""
        with self.storage.opened(name) as file, _damage(self.storage.place(name)):
            return self._checked(next(_objects(file), None), name)

    def accept_loss(self, after: Position, last: Position) -> None:
        """Record that this part is lost, so that it is no longer missing."""
        self.storage.put(f"{after}..{last}{SUFFIX}{_LOST}", b"")

    def accepted_losses(self) -> list[FilePart]:
        """Return the parts whose loss was accepted, oldest first."""
        names = [name for name in self.storage.names() if name.endswith(_LOST)]
        found = [(name, part_of(name.removesuffix(_LOST))) for name in names]
        return sorted(part._replace(name=name) for name, part in found if part is not None)

    def missing(self, deleted: Position, archived: Position) -> list[tuple[Position, Position]]:
        """Return the parts of the stream, as AFTER and LAST, that no file has, although they were archived up to the id
        `archived`, and files were deleted only up to `deleted`.
        """
        found, reached = [], deleted
        for part in sorted((*self.parts(), *self.accepted_losses())):
            if part.after > reached:
                found.append((reached, part.after))
            reached = max(reached, part.last)
        return [*found, (reached, archived)] if archived > reached else found

    def _packed(self, after: Position, last: Position, segments: Sequence[Segment]) -> bytes:
        starts = [at for segment in segments for runs in segment.runs.values() for run in runs for at in run.starts]
        header = Header(
            format=FORMAT,
            node=self._node,
            run=self._run,
            after=str(after),
            last=str(last),
            outcomes=len(starts),
            oldest=min(starts, default=0),
            newest=max(starts, default=0),
            heads=tuple(map(head_of, segments)),
        )
        compressor = zlib.compressobj(9)
        parts = [compressor.compress(msgspec.msgpack.encode(columns(segment))) for segment in segments]
        return b"".join((_MAGIC, msgspec.msgpack.encode(header), *parts, compressor.flush()))

    def _checked(self, content: Any, name: str) -> Header:
        part = part_of(name) or FilePart(START, START, name)
        expected = {
            "format": FORMAT,
            "node": self._node,
            "run": self._run,
            "after": str(part.after),
            "last": str(part.last),
        }
        for field, value in expected.items() if isinstance(content, dict) else ():
            if content.get(field) != value:
                raise SegmentDamaged(f"header has {field} {content.get(field)!r}, expected {value!r}")
        try:
            return msgspec.convert(content, Header)
        except msgspec.ValidationError as error:
            raise SegmentDamaged(f"unreadable header: {error}") from error


def _objects(file: Readable) -> Iterator[Any]:
    """Yield the header, then each segment's map, which are read lazily."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise SegmentDamaged(f"not a file of segments of format {FORMAT}")
    header, rest = _header(file)
    yield header
    unpacker = msgpack.Unpacker(raw=False, max_buffer_size=_LARGEST_BYTES)
    decompressor = zlib.decompressobj()
    while rest:
        unpacker.feed(decompressor.decompress(rest))
        yield from unpacker
        rest = file.read(_CHUNK)
    if not decompressor.eof:
        raise SegmentDamaged("truncated")


def _header(file: Readable) -> tuple[Any, bytes]:
    """Return the header, and what was read after it."""
    unpacker, content = msgpack.Unpacker(raw=False), b""
    while chunk := file.read(_CHUNK):
        unpacker.feed(chunk)
        content += chunk
        with contextlib.suppress(msgpack.OutOfData):
            return unpacker.unpack(), content[unpacker.tell() :]
    raise SegmentDamaged("truncated")


@contextlib.contextmanager
def _damage(place: str) -> Iterator[None]:
    """Translate errors of the decoders, with the file's place."""
    try:
        yield
    except (zlib.error, ValueError, msgpack.UnpackException) as error:
        raise ArchiveDamaged(f"{place}: {error or type(error).__name__}") from error
