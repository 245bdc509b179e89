"""Decodes raw replies of Redis into the kernel's values.

Input: RESP2 replies from hiredis: nested lists of bytes. Output: `Entry`, `Mail`, `Head`. A malformed entry does not
raise an error: it is returned with an empty type and the fields that are readable, and the host quarantines it. Next:
`store`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chronolet.kernel.storage.layout import Decided
from chronolet.kernel.storage.store import Head, StoreBroken
from chronolet_schemas.envelope import FIELDS, START, Entry, Mail, Position

NEVER_OWNED = Head(
    token="", version=0, step_id="", at=START, log_cursor=START, mail_cursor=START, attempts={}, schema=0
)

_FIELD_NAMES = tuple(name.encode() for name in FIELDS)
_MAIL_NAMES = [b"type", b"entity", b"request", b"data"]


def text(value: Any) -> str:
    """Return a reply as text. Invalid UTF-8 is replaced, not refused."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def position(value: bytes | str) -> Position:
    """Return the position for an entry id. Raises StoreBroken for anything else."""
    try:
        return Position.parse(text(value))
    except ValueError as error:
        raise StoreBroken(f"{text(value)!r} is not a position, expected <milliseconds>-<n>") from error


def entries(reply: Iterable[Any]) -> Iterator[Entry]:
    """Yield the entries of an XRANGE, or of one stream of an XREAD. This loop limits how fast the log can be read."""
    new, names = tuple.__new__, _FIELD_NAMES
    for raw_id, fields in reply:
        milliseconds, n = raw_id.split(b"-")
        # `new` bypasses the named tuples' constructors, which would double the cost of both.
        at = new(Position, (int(milliseconds), int(n)))
        try:
            n0, kind, n1, entity, n2, subject, n3, actor, n4, cause, n5, data = fields
            if (n0, n1, n2, n3, n4, n5) != names:
                raise ValueError(fields)  # noqa: TRY301 - handled like a wrong number of fields
            entry = (at, kind.decode(), entity.decode(), subject.decode(), actor.decode(), cause.decode(), data)
        except (ValueError, TypeError):  # includes UnicodeDecodeError; a nil entry cannot be unpacked
            yield _foreign_entry(at, fields)
        else:
            yield new(Entry, entry)


def _foreign_entry(at: Position, fields: list[bytes] | None) -> Entry:
    found = _as_map(fields)
    readable = {name: text(found.get(name.encode(), b"")) for name in FIELDS if name not in ("type", "data")}
    return Entry(position=at, type="", data=b"", **readable)


def mails(reply: Iterable[Any]) -> Iterator[Mail]:
    """Yield the commands of one mailbox, from an XREAD or XRANGE."""
    for raw_id, fields in reply:
        at = position(raw_id)
        if fields is not None and fields[::2] == _MAIL_NAMES:
            _, kind, _, entity, _, request, _, data = fields
            try:
                yield Mail(at, kind.decode(), entity.decode(), request.decode(), data)
                continue
            except UnicodeDecodeError:
                pass
        found = _as_map(fields)
        yield Mail(at, "", text(found.get(b"entity", b"")), text(found.get(b"request", b"")), b"")


def _as_map(fields: list[bytes] | None) -> dict[bytes, bytes]:
    flat = fields or []
    return dict(zip(flat[::2], flat[1::2], strict=False))


def head(flat: list[bytes], key: str) -> Head:
    """Return a shard's hash from the flat list of an HGETALL; NEVER_OWNED if the list is empty. Raises StoreBroken,
    naming key and field, if invalid.
    """
    if not flat:
        return NEVER_OWNED
    found = {text(name): text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}
    attempts = {name[4:]: _number(key, found, name) for name in found if name.startswith("try:")}
    return Head(
        token=found.get("token", ""),
        version=_number(key, found, "version"),
        step_id=found.get("step", ""),
        at=_position(key, found, "at"),
        log_cursor=_position(key, found, "log_cursor"),
        mail_cursor=_position(key, found, "mail_cursor"),
        attempts=attempts,
        schema=_number(key, found, "schema"),
        unowned_since=_number(key, found, "unowned_since"),
        acquired_at=_number(key, found, "acquired_at"),
        released=found.get("released", ""),
        moves=_number(key, found, "moves"),
        shards=_number(key, found, "of"),
        decided=_decided(key, found),
        unclean_epoch=_number(key, found, "unclean_epoch"),
    )


def _decided(key: str, found: dict[str, str]) -> Decided:
    """Return the tables that `decided_text` has written."""
    tables = found.get("decided", "").split()
    try:
        return tuple(tuple(map(Position.parse, table.split(","))) for table in tables)
    except ValueError as error:
        raise StoreBroken(f"{key}: decided is {found['decided']!r}, expected lists of positions") from error


def _number(key: str, found: dict[str, str], name: str) -> int:
    value = found.get(name, "0")
    if not value.isdigit():
        raise StoreBroken(f"{key}: {name} is {value!r}, expected a number")
    return int(value)


def _position(key: str, found: dict[str, str], name: str) -> Position:
    value = found.get(name, "0-0")
    try:
        return Position.parse(value)
    except ValueError as error:
        raise StoreBroken(f"{key}: {name} is {value!r}, expected <milliseconds>-<n>") from error
