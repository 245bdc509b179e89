"""The bytes of an archive file of segments (docs/log-format.md specifies them). Pure.

Input: merged segments, and which file of which node it is; or the pieces of a file's content. Output: the content; or
the header and the segments, checked. A file is the line `chronolet probes 1`, a msgpack map (format, node, run, after,
last, outcomes, oldest, newest, heads) and a zlib stream of msgpack maps, one for each segment. Next:
`adapters.probes.results.segment_files`, which reads and writes files.
"""

from __future__ import annotations

import contextlib
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgpack
import msgspec
from msgspec import Struct

from chronolet.rules.probes.segments.encoding import FORMAT, LATEST, SegmentDamaged, columns, from_plain
from chronolet.rules.probes.segments.file_names import FilePart
from chronolet.rules.probes.segments.gaps import Head, head_of
from chronolet.rules.probes.segments.segment import Segment

_MAGIC = b"chronolet probes 1\n"
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


class FileFormat(Struct, frozen=True):
    """The format of the files of one run of one node. If a file does not have it, a method raises SegmentDamaged,
    zlib.error, ValueError or msgpack.UnpackException.
    """

    node: str
    run: str

    def packed(self, part: FilePart, segments: Sequence[Segment]) -> bytes:
        """Return the content of a file. The same segments give the same bytes."""
        starts = [at for segment in segments for runs in segment.runs.values() for run in runs for at in run.starts]
        header = Header(
            format=FORMAT,
            node=self.node,
            run=self.run,
            after=str(part.after),
            last=str(part.last),
            outcomes=len(starts),
            oldest=min(starts, default=0),
            newest=max(starts, default=0),
            heads=tuple(map(head_of, segments)),
        )
        compressor = zlib.compressobj(9)
        parts = [compressor.compress(msgspec.msgpack.encode(columns(segment))) for segment in segments]
        return b"".join((_MAGIC, msgspec.msgpack.encode(header), *parts, compressor.flush()))

    def segments(self, part: FilePart, content: Iterable[bytes]) -> Iterator[Segment]:
        """Yield the segments of a file, whose content is read lazily."""
        heads: list[Head] = []
        objects = _objects(iter(content))
        header = self._checked(next(objects), part)
        for plain in objects:
            segment = from_plain(plain)
            heads.append(head_of(segment))
            yield segment
        if tuple(heads) != header.heads:
            raise SegmentDamaged(f"its {len(heads)} segments differ from the {len(header.heads)} in its header")

    def header(self, part: FilePart, content: Iterable[bytes]) -> Header:
        """Return a file's header. No more of the content is read."""
        return self._checked(next(_objects(iter(content))), part)

    def _checked(self, content: Any, part: FilePart) -> Header:
        expected = {
            "format": FORMAT,
            "node": self.node,
            "run": self.run,
            "after": str(part.after),
            "last": str(part.last),
        }
        for field, value in expected.items() if isinstance(content, dict) else ():
            if content.get(field) != value:
                raise SegmentDamaged(f"header has {field} {content.get(field)!r}, expected {value!r}")
        try:
            header = msgspec.convert(content, Header)
        except msgspec.ValidationError as error:
            raise SegmentDamaged(f"unreadable header: {error}") from error
        if not all(0 <= at <= LATEST for at in _times(header)):
            raise SegmentDamaged("a time of the header is out of range")
        return header


def _times(header: Header) -> Iterator[int]:
    """Yield all times of a header. Readers may show them without reading the segments."""
    yield from (header.oldest, header.newest)
    for head in header.heads:
        yield from (head.started, head.begin, head.end)
        if head.lost is not None:
            yield from (head.lost.first, head.lost.last)


def _objects(content: Iterator[bytes]) -> Iterator[Any]:
    """Yield the header, then each segment's map."""
    first = b""
    while len(first) < len(_MAGIC) and (piece := next(content, b"")):
        first += piece
    if not first.startswith(_MAGIC):
        raise SegmentDamaged(f"not a file of segments of format {FORMAT}")
    header, rest = _header(itertools.chain((first[len(_MAGIC) :],), content))
    yield header
    unpacker = msgpack.Unpacker(raw=False, max_buffer_size=_LARGEST_BYTES)
    decompressor = zlib.decompressobj()
    for piece in itertools.chain((rest,), content):
        unpacker.feed(decompressor.decompress(piece))
        yield from unpacker
    if not decompressor.eof:
        raise SegmentDamaged("truncated")


def _header(content: Iterator[bytes]) -> tuple[Any, bytes]:
    """Return the header, and what was read after it."""
    unpacker, found = msgpack.Unpacker(raw=False), b""
    for piece in content:
        unpacker.feed(piece)
        found += piece
        with contextlib.suppress(msgpack.OutOfData):
            return unpacker.unpack(), found[unpacker.tell() :]
    raise SegmentDamaged("truncated")
