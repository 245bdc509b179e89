"""`chronolet events`: prints KubeEvents about pods and the node.

Input: a selection of events. Output: a table in kubectl's format, or objects; with `-w`, new events as well. Next:
`kube_events`, which reads the events and formats the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import click

from chronolet.cli.history import event_options, kube_events
from chronolet.cli.history.kube_events import Object, Predicate, Source
from chronolet.cli.options import Command, at_option, namespace_option, with_settings
from chronolet.cli.printing import ages
from chronolet.cli.printing.forms import FORMS, form, forms, show_object
from chronolet.cli.printing.table import Growing
from chronolet.cli.session import Session, session
from chronolet.node.settings.settings import Settings

Show = Callable[[Sequence[Object]], None]


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="list events across all namespaces")
@event_options.options
@click.option("-w", "--watch", "watching", is_flag=True, help="after listing, watch for more events")
@at_option
@click.option("-o", "--output", callback=form, shell_complete=forms, metavar=FORMS, help="output format")
@click.option("--no-headers", is_flag=True, help="do not print headers")
def command(
    *,
    settings: Settings,
    namespace: str,
    all_namespaces: bool,
    about: tuple[str, str] | None,
    types: tuple[str, ...],
    age: int,
    whole: bool,
    watching: bool,
    output: str | None,
    no_headers: bool,
    at: str | None,
) -> None:
    """List events about pods and the node. Ordered by last occurrence."""
    selection = event_options.Selection(about, types, age, whole)
    if at is not None and watching:
        raise click.UsageError("found --at with --watch, expected one of them.")
    with session(settings, at=at) as node:
        chosen = selection.chosen(node, None if all_namespaces else namespace)
        source = selection.source(node)
        show = printer(node, output, namespaced=all_namespaces, headers=not no_headers, counted=True)
        found = [event for event in source.now() if chosen(event)]
        if output in (None, "wide"):
            _print_window(source, found, chosen.namespace)
        if watching:
            follow(source, found, chosen, show)
        if output in (None, "wide", "name"):
            show(found)
        else:
            listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": str(node.last())}}
            show_object({**listed, "items": found}, output or "")


def follow(source: Source, found: Sequence[Object], chosen: Predicate, show: Show) -> NoReturn:
    """Print the events found, then new ones that are `chosen`, until interrupted."""
    show(found)
    for event in source.changes():
        if chosen(event):
            show([event])
    raise AssertionError("`changes` ended")


def printer(node: Session, output: str | None, *, namespaced: bool, headers: bool, counted: bool) -> Show:
    """Return a function that prints events in this output format."""
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


def _print_window(source: Source, found: Sequence[Object], namespace: str | None) -> None:
    """Print notes on standard error: that no events were found, if `found` is empty; and when the oldest event in Redis
    was recorded, because older ones are only in the log, which `--all` reads.
    """
    if not found:
        click.echo("No events found." if namespace is None else f"No events found in {namespace} namespace.", err=True)
    if source.first is not None and isinstance(source, kube_events.Stream):
        since = ages.rfc3339(source.first.milliseconds)
        click.echo(f"Kept since {since}; for older events: chronolet events --all", err=True)
