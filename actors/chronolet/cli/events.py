"""`chronolet events`: what was told about pods and the node.

Comes in: which events. Goes out: a table in kubectl's form, objects, or both as they go on. Next: `kube_events`, which
reads them and knows the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import click

from chronolet.cli import ages, kube_events
from chronolet.cli.forms import FORMS, form, forms, show_object
from chronolet.cli.kube_events import Chosen, Object, Source, Wanted
from chronolet.cli.naming import TYPES
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.session import Session, session
from chronolet.cli.table import Growing
from chronolet.node.settings import Settings
from chronolet.node.values import SettingsError, duration

_KINDS = {"pods": "Pod", "nodes": "Node"}
_TYPES = ("Normal", "Warning")

Show = Callable[[Sequence[Object]], None]


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="of all namespaces")
@click.option("--for", "about", metavar="TYPE/NAME", help="only about pod/NAME or node/NAME")
@click.option("--types", metavar="TYPES", help="only of these types, by commas: Normal, Warning")
@click.option("--since", metavar="DURATION", help="only what happened within this, such as 10m or 2h30m")
@click.option("--all", "whole", is_flag=True, help="from the node's whole log, with what the spam filter kept back")
@click.option("-w", "--watch", "watching", is_flag=True, help="go on with what comes")
@click.option("-o", "--output", callback=form, shell_complete=forms, metavar=FORMS, help="another form")
@click.option("--no-headers", is_flag=True, help="rows only")
def command(
    *,
    settings: Settings,
    namespace: str,
    all_namespaces: bool,
    about: str | None,
    types: str | None,
    since: str | None,
    whole: bool,
    watching: bool,
    output: str | None,
    no_headers: bool,
) -> None:
    """Show what was told about pods and the node, in the order in which it happened last."""
    wanted_types, age, object_ = _types(types), _age(since), _object(about)
    where = None if all_namespaces else "default" if object_ and object_[0] == "Node" else namespace
    with session(settings) as node:
        chosen = Chosen(where, object_, wanted_types, node.now() - age if age else 0)
        source = kube_events.WholeLog(node) if whole else kube_events.Stream(node)
        show = shower(node, output, namespaced=all_namespaces, headers=not no_headers, counted=True)
        found = [event for event in source.now() if chosen(event)]
        if output in (None, "wide"):
            _say_window(source, found, where)
        if watching:
            follow(source, found, chosen, show)
        if output in (None, "wide", "name"):
            show(found)
        else:
            listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": str(node.store.last())}}
            show_object({**listed, "items": found}, output or "")


def follow(source: Source, found: Sequence[Object], chosen: Wanted, show: Show) -> NoReturn:
    """What there is, then what comes, until an interrupt."""
    show(found)
    for event in source.changes():
        if chosen(event):
            show([event])
    raise AssertionError("`changes` ended")


def shower(node: Session, output: str | None, *, namespaced: bool, headers: bool, counted: bool) -> Show:
    """What prints events in this form."""
    wide = output == "wide"
    growing = Growing(kube_events.head(namespaced=namespaced, wide=wide) if headers else ())

    def rows(found: Sequence[Object]) -> None:
        now = node.now()
        cells = [kube_events.row(one, now, namespaced=namespaced, wide=wide, counted=counted) for one in found]
        for line in growing.lines(cells):
            click.echo(line)

    def names(found: Sequence[Object]) -> None:
        for one in found:
            click.echo(f"event/{one['metadata']['name']}")

    def objects(found: Sequence[Object]) -> None:
        for one in found:
            show_object(one, output or "")
            if output == "yaml":
                click.echo("---")

    return rows if output in (None, "wide") else names if output == "name" else objects


def _say_window(source: Source, found: Sequence[Object], namespace: str | None) -> None:
    """From when on there are any: older ones may have been, and are in the log."""
    if not found:
        click.echo("No events found." if namespace is None else f"No events found in {namespace} namespace.", err=True)
    if source.first is not None and isinstance(source, kube_events.Stream):
        since = ages.rfc3339(source.first.milliseconds)
        click.echo(f"Kept since {since}; what came before: chronolet events --all", err=True)


def _types(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    found = {one.strip().capitalize() for one in text.split(",")}
    if not found <= set(_TYPES):
        raise click.UsageError(f"--types: found {text!r}, expected {' or '.join(_TYPES)}.")
    return tuple(found)


def _age(text: str | None) -> int:
    try:
        return 0 if text is None else duration("--since", text)
    except SettingsError as error:
        raise click.UsageError(f"{error}.") from error


def _object(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    kind, slash, name = text.partition("/")
    known = _KINDS.get(TYPES.get(kind, "nodes" if kind in ("node", "nodes", "no") else ""))
    if known is None or not slash or not name:
        raise click.UsageError(f"--for: found {text!r}, expected pod/NAME or node/NAME.")
    return known, name
