"""Archive files: compressed parts of the log on disk, so that the stream in Redis can be trimmed.

Input: entries. Output: files `<state folder>/archive/<run>/<first>..<last>.archive`, and the entries read back. A file
is the line `chronolet archive 1`, a msgpack map (format, node, run, first, last, count) and a zlib stream of msgpack
arrays, one per entry: position, type, entity, subject, actor, cause, data. Writing is idempotent: the same entries give
the same bytes, so a retry after a crash replaces a file with an identical one. Next: `keeper`, which writes the files;
recovery and `history`, which read them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgpack
from msgspec import Struct

from chronolet_schemas.envelope import START, Entry, Position

FORMAT = 1
_MAGIC = b"chronolet archive 1\n"
_SUFFIX = ".archive"
_CHUNK = 64 * 1024


class ArchiveDamaged(Exception):  # noqa: N818 - the condition's name
    """A file is corrupt, or entries are missing: before or between files, or in the log that is being archived. The
    text names the file or the log, and the problem.
    """


class ArchiveFile(Struct, frozen=True):
    """One complete archive file on disk."""

    path: Path
    first: Position
    last: Position
    count: int
    size_bytes: int
    sha256: str


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
    """The archive files of one run of one node. The first write creates the folder."""

    def __init__(self, state_folder: Path, node: str, run: str) -> None:
        self.folder = state_folder / "archive" / run
        self._node = node
        self._run = run

    def write(self, entries: Iterable[Entry], after: Position) -> ArchiveFile:
        """Write the entries that follow `after` to one file; the file and its name are synced to disk on return.

        Raises ValueError if there are no entries, ArchiveDamaged if there is a gap, OSError if a write fails.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        first, last, count, body = _packed(entries, after)
        header = {
            "format": FORMAT,
            "node": self._node,
            "run": self._run,
            "first": str(first),
            "last": str(last),
            "count": count,
        }
        content = _MAGIC + msgpack.packb(header) + body
        path = self.folder / f"{first}..{last}{_SUFFIX}"
        _put(path, content)
        return ArchiveFile(path, first, last, count, len(content), hashlib.sha256(content).hexdigest())

    def files(self) -> list[tuple[Position, Position, Path]]:
        """Return the first position, last position and path of each file; the positions come from the file's name.
        Oldest first; among files with the same first position, the longest first.
        """
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(ValueError):
                first, last = path.name.removesuffix(_SUFFIX).split("..")
                found.append((Position.parse(first), Position.parse(last), path))
        return sorted(found, key=lambda file: (file[0], -file[1].milliseconds, -file[1].n))

    def upto(self) -> Position:
        """Return the newest archived position, according to the file names; START if there are no files."""
        return max((last for _, last, _ in self.files()), default=START)

    def read(self, after: Position = START, upto: Position | None = None) -> Iterator[Entry]:
        """Yield the entries after the position `after` up to `upto` (None: all), oldest first, across files.

        Raises ArchiveDamaged if a file is damaged, or if events are missing before or between files. Events missing at
        the end are not an error, because the stream still has them.
        """
        gapless = Gapless(after)
        for first, last, path in self.files():
            if upto is not None and first > upto:
                return
            if last <= after:
                continue
            for entry in self._entries(path):
                if entry.position <= after:
                    continue
                if upto is not None and entry.position > upto:
                    return
                gapless.check(entry, str(path))
                after = entry.position
                yield entry

    def _entries(self, path: Path) -> Iterator[Entry]:
        """Yield the entries of one file, checked against its header."""
        with path.open("rb") as file:
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

    def _checked_header(self, header: Any, path: Path) -> dict[str, Any]:
        expected = {"format": FORMAT, "node": self._node, "run": self._run}
        if not isinstance(header, dict) or not {"count", "last"} <= header.keys():
            raise ArchiveDamaged(f"{path}: unreadable header")
        for name, value in expected.items():
            if header.get(name) != value:
                raise ArchiveDamaged(f"{path}: header has {name} {header.get(name)!r}, expected {value!r}")
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


def _put(path: Path, content: bytes) -> None:
    """Write a file atomically: it is renamed into place once its content is on disk."""
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    # Syncs the name itself, and the names of folders that were just created.
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _objects(file: IO[bytes], path: Path) -> Iterator[Any]:
    """Yield the header, then the arrays, which are read lazily."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ArchiveDamaged(f"{path}: not an archive of format {FORMAT}")
    start = file.read(_CHUNK)
    header = msgpack.Unpacker(raw=False)
    header.feed(start)
    try:
        yield header.unpack()
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=0)
        decompressor = zlib.decompressobj()
        rest = start[header.tell() :]
        while rest:
            unpacker.feed(decompressor.decompress(rest))
            yield from unpacker
            rest = file.read(_CHUNK)
    except (zlib.error, ValueError, msgpack.UnpackException) as error:
        raise ArchiveDamaged(f"{path}: cannot be read: {error or type(error).__name__}") from error
    if not decompressor.eof:
        raise ArchiveDamaged(f"{path}: truncated")


def _entry(fields: Any, path: Path) -> Entry:
    try:
        at, kind, entity, subject, actor, cause, data = fields
        return Entry(Position.parse(at), kind, entity, subject, actor, cause, data)
    except (TypeError, ValueError, AttributeError) as error:
        raise ArchiveDamaged(f"{path}: malformed entry: {error}") from error
