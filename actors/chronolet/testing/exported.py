"""Reads an exported history: the output of `chronolet log -o json`, or files of the archive.

Input: a file, or a folder with archive files. Output: the entries of the log, as they were written. Next: `history`.

`log -o json` prints field names in camelCase. They are translated back by the classes of this release; a field that its
class does not have stays as it is, and is ignored when the event is decoded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.cli.history.fields import camel
from chronolet.kernel.log.archive import Archive, ArchiveDamaged, Gapless, header_of
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.times import AHEAD_MILLISECONDS, with_time

ARCHIVE_SUFFIX = ".archive"
_TEXTS = ("type", "entity", "subject", "actor", "cause")


class HistoryError(ValueError):
    """A file that is no exported history, or only a part of one. The text names the file and the line, what was found
    and what was expected.
    """


def entries_of(path: Path) -> Sequence[Entry]:
    """Return the entries of an exported history, from the first one of the log on.

    Raises HistoryError for other files, and for a history with a gap; OSError if the file cannot be read.
    """
    found = _archived(path) if path.is_dir() or path.suffix == ARCHIVE_SUFFIX else _listed(path)
    try:
        whole = list(_gapless(found, str(path)))
    except ArchiveDamaged as damaged:
        raise HistoryError(f"{damaged}: export the whole log, without selecting entries") from damaged
    if not whole:
        raise HistoryError(f"{path}: found no entries, expected the output of `chronolet log -o json`")
    return whole


def _gapless(entries: Iterable[Entry], where: str) -> Iterator[Entry]:
    gapless, last = Gapless(START), START
    for entry in entries:
        gapless.check(entry, where)
        if entry.position <= last:
            raise HistoryError(f"{where}: found entry {entry.position} after {last}, expected ascending positions")
        last = entry.position
        yield entry


def _archived(path: Path) -> Iterator[Entry]:
    """Yield the entries of one archive file, or of all those in a folder, which belong to one run of one node."""
    files = sorted(path.glob(f"*{ARCHIVE_SUFFIX}")) if path.is_dir() else [path]
    if not files:
        raise HistoryError(f"{path}: found no files *{ARCHIVE_SUFFIX}, expected those of one run")
    folder = files[0].absolute().parent
    storage = FolderStorage(folder.parent, folder.name)
    with storage.opened(files[0].name) as file:
        header = header_of(file, str(files[0]))
    archive = Archive(storage, header["node"], header["run"])
    yield from archive.read() if path.is_dir() else archive.entries_of(path.name)


# -- the output of `log -o json` ---------------------------------------------------------------------------------------
def _listed(path: Path) -> Iterator[Entry]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _entry(line, f"{path}:{number}")
    except UnicodeDecodeError as error:
        raise HistoryError(f"{path}: found bytes that are not UTF-8, expected JSON: {error}") from error


def _entry(line: str, where: str) -> Entry:
    try:
        fields = msgspec.json.decode(line)
        position = Position.parse(fields["position"])
        type_, entity, subject, actor, cause = (msgspec.convert(fields[name], str) for name in _TEXTS)
        at = round(datetime.fromisoformat(fields["time"]).timestamp() * 1000)
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise HistoryError(
            f"{where}: found {line.strip()[:60]!r} ({type(error).__name__}: {error}), expected a line of "
            "`chronolet log -o json`"
        ) from error
    data = _packed(type_, fields.get("data"))
    if abs(position.milliseconds - at) >= AHEAD_MILLISECONDS:
        data = with_time(data, at)
    return Entry(position, type_, entity, subject, actor, cause, data)


def _packed(type_: str, data: Any) -> bytes:
    """Return the entry's data, a msgpack map; nothing for an entry of another program, or one that was unreadable."""
    if not isinstance(data, dict):
        return b""
    try:
        cls = registry.class_of(codec.split_type(type_)[0])
    except codec.Undecodable:
        cls = None
    return msgspec.msgpack.encode(data if cls is None else renamed(data, inspect.type_info(cls)))


def renamed(value: Any, kind: inspect.Type) -> Any:
    """Translate the names of a message's fields, and those within it, from camelCase to those of the class."""
    match kind:
        case inspect.UnionType():
            return next((renamed(value, one) for one in kind.types if _holds(one, value)), value)
        case inspect.StructType() if isinstance(value, dict):
            fields = {camel(one.encode_name): one for one in kind.fields}
            pairs = ((fields.get(name), name, one) for name, one in value.items())
            return {
                name if field is None else field.encode_name: one if field is None else renamed(one, field.type)
                for field, name, one in pairs
            }
        case inspect.DictType() if isinstance(value, dict):
            return {name: renamed(one, kind.value_type) for name, one in value.items()}
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType() if isinstance(
            value, list
        ):
            return [renamed(one, kind.item_type) for one in value]
        case inspect.TupleType() if isinstance(value, list):
            return [
                one if of is None else renamed(one, of) for of, one in itertools.zip_longest(kind.item_types, value)
            ]
        case _:
            return value


def _holds(kind: inspect.Type, value: Any) -> bool:
    """Return whether a value in JSON may be of this type, as far as names of fields within it matter."""
    if isinstance(value, dict):
        return isinstance(kind, inspect.StructType | inspect.DictType)
    lists = inspect.ListType | inspect.VarTupleType | inspect.TupleType | inspect.SetType | inspect.FrozenSetType
    return isinstance(value, list) and isinstance(kind, lists)
