"""The flags that say which KubeEvents are wanted: of `events`, and of `get events`.

Comes in: what a person typed. Goes out: a `Selection`, or a usage error that names the flag. Next: `kube_events`, which
reads and chooses by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from chronolet.cli.history.kube_events import Chosen, Source, Stream, WholeLog, elsewhere
from chronolet.cli.naming import TYPES
from chronolet.cli.session import Session
from chronolet.node.settings.values import SettingsError, duration

_KINDS = {"pods": "Pod", "nodes": "Node"}
_TYPES = ("Normal", "Warning")

F = TypeVar("F", bound=Callable[..., Any])


class Selection(NamedTuple):
    """What the flags say; as it is made, they say nothing. `age` in milliseconds."""

    about: tuple[str, str] | None = None
    types: tuple[str, ...] = ()
    age: int = 0
    whole: bool = False

    def chosen(self, node: Session, namespace: str | None) -> Chosen:
        """What of the namespace (None: of all) is wanted; a node's events lie in that of its own."""
        where = "default" if namespace is not None and self.about and self.about[0] == "Node" else namespace
        return Chosen(where, self.about, self.types, node.now() - self.age if self.age else 0)

    def source(self, node: Session) -> Source:
        """Where they are read."""
        if self.whole:
            return WholeLog(node)
        if said := elsewhere(node):
            click.echo(f"note: {said}", err=True)
        return Stream(node)


def _types(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    found = {one.strip().capitalize() for one in text.split(",")}
    if not found <= set(_TYPES):
        raise click.UsageError(f"--types: found {text!r}, expected {' or '.join(_TYPES)}.")
    return tuple(sorted(found))


def _age(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int:
    try:
        return 0 if text is None else duration("--since", text)
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
        "--types", callback=_types, metavar="TYPES", help="only events of these types, by commas: Normal, Warning"
    ),
    click.option(
        "--since",
        "age",
        callback=_age,
        metavar="DURATION",
        help="only events that happened within this, such as 10m or 2h30m",
    ),
    click.option(
        "--all", "whole", is_flag=True, help="events from the node's whole log, with what the spam filter kept back"
    ),
)


def options(command: F) -> F:
    """`about`, `types`, `age` and `whole`, which a `Selection` is made of."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
