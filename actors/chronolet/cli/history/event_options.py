"""Defines the flags of `events` and `get events` that select KubeEvents.

Input: flag values. Output: a `Selection`, or a usage error that names the flag. Next: `kube_events`, which reads
and filters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from chronolet.cli.naming import TYPES

if TYPE_CHECKING:  # `get pods` also has these flags, but needs no events
    from chronolet.cli.history.kube_events import EventFilter, Source
    from chronolet.cli.session import Session

_KINDS = {"pods": "Pod", "nodes": "Node"}
_TYPES = ("Normal", "Warning")

F = TypeVar("F", bound=Callable[..., Any])


class Selection(NamedTuple):
    """The values of the flags; the defaults select all events in Redis.

    `about`: the kind and name of the involved object. `age`: the maximum age in milliseconds, 0 for no limit. `whole`:
    read the whole log instead of Redis.
    """

    about: tuple[str, str] | None = None
    types: tuple[str, ...] = ()
    age: int = 0
    whole: bool = False

    def chosen(self, node: Session, namespace: str | None) -> EventFilter:
        """Return the filter for events in this namespace (None: all). Events about a node have namespace `default`."""
        from chronolet.cli.history.kube_events import EventFilter  # noqa: PLC0415 - see above

        where = "default" if namespace is not None and self.about and self.about[0] == "Node" else namespace
        return EventFilter(where, self.about, self.types, node.now() - self.age if self.age else 0)

    def source(self, node: Session) -> Source:
        """Return the source of the events: the whole log if `whole`, or for a moment of the past; else the stream in
        Redis. For the stream, print a note if the agent does not deliver KubeEvents to Redis.
        """
        from chronolet.cli.history.kube_events import Stream, WholeLog, elsewhere  # noqa: PLC0415 - see above

        if self.whole or node.at is not None:
            return WholeLog(node, suppresses=not self.whole)
        if note := elsewhere(node):
            click.echo(f"note: {note}", err=True)
        return Stream(node)


def _types(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    found = {one.strip().capitalize() for one in text.split(",")}
    if not found <= set(_TYPES):
        raise click.UsageError(f"--types: found {text!r}, expected {' or '.join(_TYPES)}.")
    return tuple(sorted(found))


def _age(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int:
    if text is None:
        return 0
    from chronolet.node.settings.values import SettingsError, duration  # noqa: PLC0415 - see above

    try:
        return duration("--since", text)
    except SettingsError as error:
        raise click.UsageError(f"{error}.") from error


def _about(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    kind, slash, name = text.partition("/")
    known = _KINDS.get(TYPES.get(kind, "nodes" if kind in ("node", "nodes", "no") else ""))
    if known is None or not slash or not name:
        raise click.UsageError(f"--for: found {text!r}, expected pod/NAME or node/NAME.")
    return known, name


_OPTIONS = (
    click.option(
        "--for", "about", callback=_about, metavar="TYPE/NAME", help="only events about pod/NAME or node/NAME"
    ),
    click.option(
        "--types", callback=_types, metavar="TYPES", help="only events of these types, comma-separated: Normal, Warning"
    ),
    click.option(
        "--since",
        "age",
        callback=_age,
        metavar="DURATION",
        help="only events newer than this, such as 10m or 2h30m",
    ),
    click.option(
        "--all",
        "whole",
        is_flag=True,
        help="events from the node's whole log, including those dropped by the spam filter",
    ),
)


def options(command: F) -> F:
    """Add the options `about`, `types`, `age` and `whole`, which are the fields of a `Selection`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
