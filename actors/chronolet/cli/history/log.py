"""`chronolet log`: the node's event log, decoded.

Comes in: what to show. Goes out: a line for each entry, for people or as JSON. Entries that this release cannot
decode are shown as plain data, or as bytes.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

import click
import msgpack

from chronolet.cli.asking import follow
from chronolet.cli.errors import Failure
from chronolet.cli.history.fields import in_camel_case, readable
from chronolet.cli.options import Command, with_settings
from chronolet.cli.printing import ages, table
from chronolet.cli.session import Session, session
from chronolet.history.entries import before, concerns_pod, position_before_last
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import duration
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Event, Position

_PATIENCE = 5_000
"""Milliseconds that one look for new entries waits: any entry ends it at once."""
_LONG = 60
_SHORT_HASH = 12
_HASH = re.compile("[0-9a-f]{32,}")


@click.command(cls=Command)
@with_settings()
@click.option("--since", metavar="DURATION", help="only what is not older than this, such as 10m or 2h30m")
@click.option("-f", "--follow", "following", is_flag=True, help="go on with what comes")
@click.option("--entity", metavar="PATTERN", help="only this entity, such as pod/default/web or 'pod/*'")
@click.option("--pod", metavar="[NAMESPACE/]NAME", help="only what is about this pod, whoever wrote it")
@click.option("--type", "type_", metavar="PATTERN", help="only these events, such as pod.ContainerStarted or 'pod.*'")
@click.option("-o", "--output", type=click.Choice(["json"]), help="a JSON object for each entry")
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
    """Show the node's event log."""
    chosen = Filter(entity, type_, pod)
    write = as_json if output else as_line
    with session(settings) as node:
        after, at = _begin(node, since, None if chosen.narrow else count), START
        wanted = _noting(node.entries(after), chosen, seen := _Seen(after))
        for entry in deque(wanted, maxlen=count) if count is not None else wanted:
            click.echo(write(entry))
        at = seen.position
        for entry in follow(node.store, at, look_milliseconds=_PATIENCE) if following else ():
            if chosen(entry):
                click.echo(write(entry))


class Filter:
    """Which entries are wanted, by shell patterns; a type's version need not be given."""

    def __init__(self, entity: str | None, type_: str | None, pod: str | None) -> None:
        self.entity = entity
        self.type = type_
        self.pod = pod if pod is None or "/" in pod else f"default/{pod}"
        self.narrow = (entity, type_, pod) != (None, None, None)

    def __call__(self, entry: Entry) -> bool:
        if self.pod is not None and not concerns_pod(entry, self.pod):
            return False
        if self.entity is not None and not fnmatch.fnmatchcase(entry.entity, self.entity):
            return False
        names = (entry.type, entry.type.partition("@")[0])
        return self.type is None or any(fnmatch.fnmatchcase(name, self.type) for name in names)


class _Seen:
    def __init__(self, position: Position) -> None:
        self.position = position


def _noting(entries: Iterator[Entry], chosen: Filter, seen: _Seen) -> Iterator[Entry]:
    for entry in entries:
        seen.position = entry.position
        if chosen(entry):
            yield entry


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
    """The entry's data as plain data, whatever release wrote it; as hexadecimal text if it is no msgpack."""
    try:
        return msgpack.unpackb(entry.data, strict_map_key=False)
    # TypeError: a map's key may be anything in msgpack, a list too.
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        return f"undecodable ({error}): {entry.data.hex()}"


def as_json(entry: Entry) -> str:
    """One JSON object; times in its data are milliseconds."""
    fields = {
        "position": str(entry.position),
        "time": ages.rfc3339(entry.position.milliseconds, fraction=True),
        "type": entry.type,
        "entity": entry.entity,
        "subject": entry.subject,
        "actor": entry.actor,
        "cause": entry.cause,
        "data": _data(entry),
    }
    return json.dumps(fields, default=repr)


def _data(entry: Entry) -> Any:
    try:
        return in_camel_case(codec.decode(entry.type, entry.data, Event))
    except codec.Undecodable:
        return decoded(entry)


def as_line(entry: Entry) -> str:
    """Time and number, entity, type, subject, cause, data."""
    time = ages.rfc3339(entry.position.milliseconds, fraction=True)
    words = [time, f"#{entry.position.n}", entry.entity, entry.type.removesuffix("@1")]
    words += [entry.subject] if entry.subject else []
    words += [f"<-{_cause(entry.cause)}"] if entry.cause else []
    return table.plain(" ".join([*words, _compact(decoded(entry), entry)]).rstrip())


def _cause(cause: str) -> str:
    """A position by its number, which is enough to find it; a request id as it is."""
    milliseconds, dash, number = cause.partition("-")
    if dash and milliseconds.isdigit() and number.isdigit():
        return f"#{number}"
    return _HASH.sub(lambda found: found[0][:_SHORT_HASH], cause)


def _compact(data: Any, entry: Entry) -> str:
    """The fields, without those that only repeat what the line has named already."""
    if not isinstance(data, dict):
        return _short(data)
    if data.get("reason") == "ContainerStatusUnknown" and "exit_code" in data:
        data = {**data, "exit_code": "unknown"}  # the number is a kill's, and only stands for what nobody saw
    said = {("pod", entry.entity.partition("/")[2]), ("container", entry.subject.removeprefix("container/"))}
    left = ((name, value) for name, value in data.items() if (name, str(value)) not in said)
    return " ".join(f"{name}={_short(readable(name, value))}" for name, value in left)


def _short(value: Any) -> str:
    if isinstance(value, str) and _HASH.fullmatch(value):
        return value[:_SHORT_HASH]
    if isinstance(value, str) and value and value.isprintable() and " " not in value:
        return value if len(value) <= _LONG else f"{value[:_LONG]}..."
    text = json.dumps(value, default=repr)
    return text if len(text) <= 2 * _LONG else f"{text[: 2 * _LONG]}..."
