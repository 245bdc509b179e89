"""Archive files: compressed parts of the log outside Redis, so that the stream can be trimmed.

Input: entries. Output: files `<first>..<last>.archive` in an `ArchiveStorage`, and the entries read back. A file
is the line `chronolet archive 1`, a msgpack map (format, node, run, first, last, count) and a zlib stream of msgpack
arrays, one per entry: position, type, entity, subject, actor, cause, data. Writing is idempotent: the same entries give
the same bytes, so a retry after a crash replaces a file with an identical one. An empty file `<first>..<last>.lost`
records that an operator has accepted the loss of these entries. Next: `keeper`, which writes the files;
recovery and `history`, which read them.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgpack
from msgspec import Struct

from chronolet.kernel.log.archive_storage import ArchiveStorage, Readable
from chronolet_schemas.envelope import START, Entry, Position

FORMAT = 1
_MAGIC = b"chronolet archive 1\n"
_SUFFIX = ".archive"
_LOST = ".lost"
_CHUNK = 64 * 1024


class ArchiveDamaged(Exception):  # noqa: N818 - the condition's name
    """A file is corrupt, or entries are missing: before or between files, or in the log that is being archived. The
    text names the file or the log, and the problem.
    """


class ArchiveFile(Struct, frozen=True):
    """One complete archive file."""

    name: str
    first: Position
    last: Position
    count: int
    size_bytes: int
    sha256: str


class Part(NamedTuple):
    """A file and the positions of its first and last entry, according to its name."""

    first: Position
    last: Position
    name: str


class Gapless:
    """Checks that the number `n` in positions increases by one from entry to entry.

    A foreign entry, which another program added under an id of its own choice, uses up one number; neither its number
    nor that of the next entry is checked.
    """

    def __init__(self, after: Position) -> None:
        self._n = after.n
        self._checked = True

    def check(self, entry: Entry, where: str) -> None:
        """Check the next entry. Raises ArchiveDamaged, with `where` in its text, if the entry does not have the
        expected number.
        """
        self._n += 1
        foreign = not entry.type
        if not foreign and self._checked and entry.position.n != self._n:
            raise ArchiveDamaged(f"{where}: expected event number {self._n}, found {entry.position}")
        if not foreign:
            self._n = entry.position.n
        self._checked = not foreign


class Archive:
    """The archive files of one run of one node. Every method raises OSError if the storage cannot be used."""

    def __init__(self, storage: ArchiveStorage, node: str, run: str) -> None:
        self.storage = storage
        self.node = node
        self.run = run

    def write(self, entries: Iterable[Entry], after: Position) -> ArchiveFile:
        """Write the entries that follow `after` to one file, which is stored durably on return.

        Raises ValueError if there are no entries, ArchiveDamaged if there is a gap.
        """
        first, last, count, body = _packed(entries, after)
        header = {
            "format": FORMAT,
            "node": self.node,
            "run": self.run,
            "first": str(first),
            "last": str(last),
            "count": count,
        }
        content = _MAGIC + msgpack.packb(header) + body
        name = f"{first}..{last}{_SUFFIX}"
        self.storage.put(name, content)
        return ArchiveFile(name, first, last, count, len(content), hashlib.sha256(content).hexdigest())

    def accept_loss(self, first: Position, last: Position) -> None:
        """Record that the entries from `first` to `last` are lost and that trimming continues without them."""
        self.storage.put(f"{first}..{last}{_LOST}", b"")

    def files(self) -> list[Part]:
        """Return the files, oldest first; among files with the same first position, the longest first."""
        return self._parts(_SUFFIX)

    def accepted_losses(self) -> list[Part]:
        """Return the parts whose loss was accepted, in the order of `files`."""
        return self._parts(_LOST)

    def _parts(self, suffix: str) -> list[Part]:
        found = []
        for name in self.storage.names():
            with contextlib.suppress(ValueError):
                if name.endswith(suffix):
                    first, last = name.removesuffix(suffix).split("..")
                    found.append(Part(Position.parse(first), Position.parse(last), name))
        return sorted(found, key=lambda part: (part.first, -part.last.milliseconds, -part.last.n))

    def expect(self, reached: Position) -> None:
        """Raise ArchiveDamaged if a part of the log up to `reached` was archived, but no file here begins there: this
        is another host's folder, or an emptied one. START: nothing was archived.
        """
        if reached == START or any(part.first <= reached for part in (*self.files(), *self.accepted_losses())):
            return
        others = ", ".join(self.storage.other_runs())
        raise ArchiveDamaged(
            f"{self.storage.place()}: has no file of the log up to {reached}, which was archived before"
            + (f"; found files of other runs: {others}" if others else "")
            + ". Use the --archive and --root-dir that the log was archived to, or copy its files back;"
            " see `chronolet archive verify`"
        )

    def check(self, name: str) -> None:
        """Raise ArchiveDamaged if the file cannot be decompressed, or its header is not this log's. This is cheaper
        than reading its entries, and detects any change of the file's content.
        """
        with self.storage.opened(name) as file:
            header, contents = _opened(file, self.storage.place(name))
            self._checked_header(header, self.storage.place(name))
            for _ in contents:
                pass

    def read(self, after: Position = START, upto: Position | None = None) -> Iterator[Entry]:
        """Yield the entries after the position `after` up to `upto` (None: all), oldest first, across files.

        Raises ArchiveDamaged if a file is damaged, or if events are missing before or between files. Events missing at
        the end are not an error, because the stream still has them.
        """
        gapless = Gapless(after)
        for first, last, name in self.files():
            if upto is not None and first > upto:
                return
            if last <= after:
                continue
            for entry in self.entries_of(name):
                if entry.position <= after:
                    continue
                if upto is not None and entry.position > upto:
                    return
                gapless.check(entry, self.storage.place(name))
                after = entry.position
                yield entry

    def entries_of(self, name: str) -> Iterator[Entry]:
        """Yield the entries of one file, checked against its header. Raises ArchiveDamaged at the first damage."""
        path = self.storage.place(name)
        with self.storage.opened(name) as file:
            objects = _objects(file, path)
            header = self._checked_header(next(objects), path)
            count, entry = 0, None
            for fields in objects:
                entry = _entry(fields, path)
                count += 1
                yield entry
            if count != header["count"] or entry is None or str(entry.position) != header["last"]:
                raise ArchiveDamaged(
                    f"{path}: found {count} events up to {entry.position if entry else None}, expected"
                    f" {header['count']} up to {header['last']} as in its header"
                )

    def _checked_header(self, header: Any, path: str) -> dict[str, Any]:
        expected = {"format": FORMAT, "node": self.node, "run": self.run}
        if not isinstance(header, dict) or not {"count", "last"} <= header.keys():
            raise ArchiveDamaged(f"{path}: unreadable header")
        for name, value in expected.items():
            if header.get(name) != value:
                raise ArchiveDamaged(f"{path}: header has {name} {header.get(name)!r}, expected {value!r}")
        return header


def header_of(file: Readable, path: str) -> dict[str, Any]:
    """Return the header of a file, which names its node and its run. Raises ArchiveDamaged if there is none."""
    header, _ = _opened(file, path)
    if not isinstance(header, dict) or not {"node", "run"} <= header.keys():
        raise ArchiveDamaged(f"{path}: unreadable header")
    return header


def _packed(entries: Iterable[Entry], after: Position) -> tuple[Position, Position, int, bytes]:
    """Return the first and last position, the number of entries, and the compressed entries."""
    gapless, packer, compressor = Gapless(after), msgpack.Packer(), zlib.compressobj(1)
    parts: list[bytes] = []
    first, last, count = None, after, 0
    for entry in entries:
        gapless.check(entry, "the log")
        first, last, count = first or entry.position, entry.position, count + 1
        parts.append(compressor.compress(packer.pack((str(entry.position), *entry[1:]))))
    if first is None:
        raise ValueError(f"nothing to archive after {after}")
    parts.append(compressor.flush())
    return first, last, count, b"".join(parts)


def _objects(file: Readable, path: str) -> Iterator[Any]:
    """Yield the header, then the arrays, which are read lazily."""
    header, contents = _opened(file, path)
    yield header
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=0)
    for content in contents:
        unpacker.feed(content)
        with _damage(path):
            yield from unpacker


def _opened(file: Readable, path: str) -> tuple[Any, Iterator[bytes]]:
    """Return the header of a file and an iterator over its decompressed contents."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ArchiveDamaged(f"{path}: not an archive of format {FORMAT}")
    start = file.read(_CHUNK)
    unpacker = msgpack.Unpacker(raw=False)
    unpacker.feed(start)
    with _damage(path):
        header = unpacker.unpack()
    return header, _decompressed(start[unpacker.tell() :], file, path)


def _decompressed(rest: bytes, file: Readable, path: str) -> Iterator[bytes]:
    decompressor = zlib.decompressobj()
    while rest:
        with _damage(path):
            content = decompressor.decompress(rest)
        yield content
        rest = file.read(_CHUNK)
    if not decompressor.eof:
        raise ArchiveDamaged(f"{path}: truncated")


@contextlib.contextmanager
def _damage(path: str) -> Iterator[None]:
    """Translate errors of the decoders."""
    try:
        yield
    except (zlib.error, ValueError, msgpack.UnpackException) as error:
        raise ArchiveDamaged(f"{path}: cannot be read: {error or type(error).__name__}") from error


def _entry(fields: Any, path: str) -> Entry:
    try:
        at, kind, entity, subject, actor, cause, data = fields
        return Entry(Position.parse(at), kind, entity, subject, actor, cause, data)
    except (TypeError, ValueError, AttributeError) as error:
        raise ArchiveDamaged(f"{path}: malformed entry: {error}") from error
