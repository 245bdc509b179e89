"""`chronolet log`: prints the node's event log, decoded.

Input: a filter. Output: a line for each entry, as text or JSON. Entries that this release cannot decode appear as
plain data, or as hexadecimal text.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import click
import msgpack

from chronolet.cli.errors import Failure
from chronolet.cli.history.fields import in_camel_case, readable
from chronolet.cli.options import Command, with_settings
from chronolet.cli.printing import ages, table
from chronolet.cli.session import Session, session
from chronolet.history.derived.wanted import Named, Wanted
from chronolet.history.entries import before, position_before_last
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.values import duration
from chronolet_schemas import codec, data_fields, registry, times
from chronolet_schemas.envelope import START, Entry, Event, Position

_BLOCK_MILLISECONDS = 5_000
"""The longest time that one read waits for new entries; it returns as soon as there is one."""
_LONG = 60
_SHORT_HASH = 12
_HASH_LENGTH = 32
_HASH = re.compile(f"[0-9a-f]{{{_HASH_LENGTH},}}")
_as_text = json.JSONEncoder(default=repr).encode
_TOGETHER = 100
"""The number of lines that are written at once if nobody is watching."""


@click.command(cls=Command)
@with_settings()
@click.option("--since", metavar="DURATION", help="only entries newer than this, such as 10m or 2h30m")
@click.option("-f", "--follow", "following", is_flag=True, help="after listing, print new entries")
@click.option("--entity", metavar="PATTERN", help="only entries of this entity, such as pod/default/web or 'pod/*'")
@click.option("--pod", metavar="[NAMESPACE/]NAME", help="only entries about this pod, from any actor")
@click.option(
    "--type", "type_", metavar="PATTERN", help="only events of this type, such as pod.ContainerStarted or 'pod.*'"
)
@click.option("-o", "--output", type=click.Choice(["json"]), help="output format: one JSON object per entry")
@click.option("-n", "count", type=click.IntRange(min=0), metavar="N", help="only the last N entries")
def command(
    *,
    settings: Settings,
    since: str | None,
    following: bool,
    entity: str | None,
    pod: str | None,
    type_: str | None,
    output: str | None,
    count: int | None,
) -> None:
    """Print the node's event log."""
    chosen = _selected(entity, type_, pod)
    write = as_json if output else as_line
    with session(settings) as node:
        after = _begin(node, since, count if chosen.anything else None)
        newer = _newer(
            node.entries(after, chosen, prefer_archive=True), 0 if since is None else node.now() - _duration(since)
        )
        wanted = _filtered(newer, chosen, cursor := _Cursor(after))
        _print(map(write, deque(wanted, maxlen=count) if count is not None else wanted))
        for entry in _following(node, cursor.position) if following else ():
            if chosen.meets(entry):
                click.echo(write(entry))


def _print(lines: Iterable[str]) -> None:
    """Print the lines; also those before an error."""
    together = 1 if sys.stdout.isatty() else _TOGETHER
    waiting: list[str] = []
    try:
        for line in lines:
            waiting.append(line)
            if len(waiting) >= together:
                text, waiting = "\n".join(waiting), []
                click.echo(text)
    finally:
        if waiting:
            click.echo("\n".join(waiting))


def _following(node: Session, at: Position) -> Iterator[Entry]:
    from chronolet.cli.sending import follow  # noqa: PLC0415 - only --follow needs it

    return follow(node.store, at, look_milliseconds=_BLOCK_MILLISECONDS)


def _selected(entity: str | None, type_: str | None, pod: str | None) -> Wanted:
    """Select entries by pod, and by shell patterns for entity and type; one for types may omit the version."""
    return Wanted(
        entity=None if entity is None else _like(entity),
        type=None if type_ is None else _like_type(type_),
        pod=pod if pod is None or "/" in pod else f"default/{pod}",
    )


def _like(pattern: str) -> Named:
    matches = re.compile(fnmatch.translate(pattern)).match
    return lambda name: matches(name) is not None


def _like_type(pattern: str) -> Named:
    like = _like(pattern)
    return lambda name: like(name) or like(name.partition("@")[0])


class _Cursor:
    """The position of the last entry read."""

    def __init__(self, position: Position) -> None:
        self.position = position


def _filtered(entries: Iterator[Entry], chosen: Wanted, cursor: _Cursor) -> Iterator[Entry]:
    for entry in entries:
        cursor.position = entry.position
        if chosen.meets(entry):
            yield entry


def _newer(entries: Iterator[Entry], milliseconds: int) -> Iterator[Entry]:
    """Skip the entries from before this time: positions may be ahead of the times of their entries."""
    return (entry for entry in entries if times.time_of(entry) >= milliseconds)


def _begin(node: Session, since: str | None, count: int | None) -> Position:
    starts = [START]
    if since is not None:
        starts.append(before(node.now() - _duration(since)))
    if count is not None:
        starts.append(position_before_last(node.store, count))
    return max(starts)


def _duration(text: str) -> int:
    try:
        return duration("--since", text)
    except ValueError as error:
        raise Failure(str(error), status=2) from error


def decoded(entry: Entry) -> Any:
    """Decode the entry's data to plain data, whichever release wrote it. If it is not msgpack, return the error and the
    data as hexadecimal text.
    """
    try:
        found = msgpack.unpackb(entry.data, strict_map_key=False)
    # TypeError: a map key in msgpack may have any type, such as a list.
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        return f"undecodable ({error}): {entry.data.hex()}"
    if isinstance(found, dict):
        found.pop(data_fields.TIME, None)  # shown as the entry's time
        found.pop(data_fields.INPUT, None)  # for `replay --verify`; no text
    return found


def as_json(entry: Entry) -> str:
    """Format the entry as one JSON object. Times in `data` are milliseconds since the epoch. The version in `type` is
    that of `data`: the newest one that this release knows.
    """
    type_, data = _data(entry)
    fields = {
        "position": str(entry.position),
        "time": ages.rfc3339(times.time_of(entry), fraction=True),
        "type": type_,
        "entity": entry.entity,
        "subject": entry.subject,
        "actor": entry.actor,
        "cause": entry.cause,
        "data": data,
    }
    return json.dumps(fields, default=repr)


def _data(entry: Entry) -> tuple[str, Any]:
    """Return the entry's data, and its type with the version of that data."""
    try:
        event = codec.decode(entry.type, entry.data, Event)
    except codec.Undecodable:
        return entry.type, decoded(entry)
    return registry.type_of(type(event)), in_camel_case(event)


def as_line(entry: Entry) -> str:
    """Format the entry as text: time, number, entity, type, subject, cause, data."""
    time = ages.rfc3339(times.time_of(entry), fraction=True)
    words = [time, f"#{entry.position.n}", entry.entity, entry.type.removesuffix("@1")]
    words += [entry.subject] if entry.subject else []
    words += [f"<-{cause_text(entry.cause)}"] if entry.cause else []
    return table.plain(" ".join([*words, compact(decoded(entry), entry)]).rstrip())


def cause_text(cause: str) -> str:
    """Format a cause: a position as `#` and its number, which is unique; a request id with long hashes shortened."""
    milliseconds, dash, number = cause.partition("-")
    if dash and milliseconds.isdigit() and number.isdigit():
        return f"#{number}"
    return _HASH.sub(lambda found: found[0][:_SHORT_HASH], cause)


def compact(data: Any, entry: Entry) -> str:
    """Format the fields of an entry's data, as `decoded` returns it, except those that the line already contains."""
    if not isinstance(data, dict):
        return _short(data)
    if data.get("reason") == "ContainerStatusUnknown" and "exit_code" in data:
        data = {**data, "exit_code": "unknown"}  # the logged 137 is a placeholder: the real exit was not observed
    shown = {"pod": entry.entity.partition("/")[2], "container": entry.subject.removeprefix("container/")}
    return " ".join(
        [
            f"{name}={_short(value if type(value) is str else readable(str(name), value))}"
            for name, value in data.items()
            if name not in shown or str(value) != shown[name]
        ]
    )


def _short(value: Any) -> str:
    if isinstance(value, str) and value and value.isprintable() and " " not in value:
        if len(value) >= _HASH_LENGTH and _HASH.fullmatch(value):
            return value[:_SHORT_HASH]
        return value if len(value) <= _LONG else f"{value[:_LONG]}..."
    if type(value) is int:
        return str(value)
    text = _as_text(value)
    return text if len(text) <= 2 * _LONG else f"{text[: 2 * _LONG]}..."
