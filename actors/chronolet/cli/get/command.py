"""`chronolet get`: pods, containers, devices, images, actors, events and cgroups, as the log has them.

Comes in: types, names, a form. Goes out: tables, names, JSON, YAML, or what a JSONPath finds. Next: `resources`, which
finds what is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from chronolet.cli.completion.completing import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.get import actors, cgroups, selecting, sorting
from chronolet.cli.get.resources import FINDERS, Asked, Found, missing_pods, wanted_events
from chronolet.cli.history import event_options, events
from chronolet.cli.naming import asked_types
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing import table
from chronolet.cli.printing.forms import FORMS, form, forms, show_object
from chronolet.cli.session import Session, session
from chronolet.cli.watch.watch import follow, shower
from chronolet.cli.watch.watching import Pods
from chronolet.node.settings.table import Settings

_NODE_WIDE = ("devices", "images", "actors", "cgroups", "nodes")
"""What belongs to no namespace."""
_TYPES = """\b
The types: pods, containers, devices, images, actors, events, cgroups, nodes;
several by commas, such as pods,events."""


@click.command(cls=Command, epilog=f"{_TYPES}\n\n{actors.HELP}\n\n{cgroups.HELP}")
@with_settings()
@namespace_option
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="(TYPE[,TYPE...] [NAME...] | TYPE/NAME...)",
    shell_complete=types_then_pods,
)
@click.option("-A", "--all-namespaces", is_flag=True, help="pods of all namespaces")
@click.option("-o", "--output", callback=form, shell_complete=forms, metavar=FORMS, help="another form")
@click.option("-w", "--watch", "watching", is_flag=True, help="go on with every change of pods or events")
@selecting.options
@event_options.options
@click.option("--sort-by", "order", callback=sorting.order, metavar="JSONPATH", help="such as .metadata.name")
@click.option("--show-labels", is_flag=True, help="the pods' labels in a last column")
@click.option("--no-headers", is_flag=True, help="rows only")
def command(
    *,
    settings: Settings,
    namespace: str,
    words: Sequence[str],
    all_namespaces: bool,
    output: str | None,
    watching: bool,
    no_headers: bool,
    show_labels: bool,
    selector: selecting.Wanted | None,
    field_selector: selecting.Wanted | None,
    order: sorting.Order | None,
    about: tuple[str, str] | None,
    types: tuple[str, ...],
    age: int,
    whole: bool,
) -> None:
    """Show pods, containers, devices, images, actors, events, cgroups or the node."""
    selected = selector is not None or field_selector is not None
    asked = [
        Asked(
            type_,
            names,
            None if all_namespaces else namespace,
            output,
            not no_headers,
            show_labels,
            selecting.chosen(selector, field_selector),
            order,
            event_options.Selection(about, types, age, whole),
        )
        for type_, names in asked_types(words, tuple(FINDERS))
    ]
    _check(asked, watching=watching, selected=selected)
    with session(settings) as node:
        if watching:
            _watch(node, asked[0])
        answers = [FINDERS[one.type](node, one) for one in asked]
        position = str(node.store.last())
    found = [each for each, _ in answers]
    _show(asked, found, position)
    if missing := [line for _, lines in answers for line in lines]:
        raise Failure(*missing)


def _check(asked: Sequence[Asked], *, watching: bool, selected: bool) -> None:
    for one in asked:
        _check_one(one, watching=watching, selected=selected)
    if watching and len(asked) > 1:
        raise click.UsageError("you may only specify a single resource type with --watch.")
    if asked[0].events != event_options.Selection() and all(one.type != "events" for one in asked):
        raise click.UsageError(f"found --for, --types, --since or --all with {asked[0].type}, expected events.")


def _check_one(asked: Asked, *, watching: bool, selected: bool) -> None:
    if watching and asked.type not in ("pods", "events"):
        raise click.UsageError(f"found --watch with {asked.type}, expected pods or events.")
    if selected and asked.type in _NODE_WIDE and asked.type != "nodes":
        raise click.UsageError(f"found a selector with {asked.type}, expected pods or containers.")
    if selected and asked.names:
        raise click.UsageError("name cannot be provided when a selector is specified.")
    if asked.names and asked.namespace is None and asked.type == "pods":
        raise click.UsageError("a resource cannot be retrieved by name across all namespaces.")


def _watch(node: Session, asked: Asked) -> NoReturn:
    """Until an interrupt; not at all if one of the names is nobody's."""
    if asked.type == "events":
        _watch_events(node, asked)
    now = Pods(node)
    chosen = [pod for pod in now.now.values() if asked.namespace in (None, pod["metadata"]["namespace"])]
    if missing := missing_pods(asked, chosen):
        raise Failure(*missing)
    show = shower(node, asked.output, namespaced=asked.namespace is None, headers=asked.headers, labels=asked.labels)
    follow(now, lambda pod: _is_asked(asked, pod["metadata"]) and asked.wanted(pod), show)
    raise AssertionError("`follow` ended")


def _watch_events(node: Session, asked: Asked) -> NoReturn:
    wanted, source = wanted_events(node, asked), asked.events.source(node)
    found = [event for event in source.now() if wanted(event)]
    show = events.shower(node, asked.output, namespaced=asked.namespace is None, headers=asked.headers, counted=False)
    events.follow(source, found, wanted, show)


def _is_asked(asked: Asked, metadata: Mapping[str, Any]) -> bool:
    return asked.namespace in (None, metadata["namespace"]) and (not asked.names or metadata["name"] in asked.names)


def _show(asked: Sequence[Asked], found: Sequence[Found], position: str) -> None:
    first = asked[0]
    if first.output and first.output not in ("wide", "name"):
        if any(each.items for each in found) or not first.names:
            show_object(_whole(asked, found, position), first.output)
    elif first.output == "name":
        for name in (name for each in found for name in each.names):
            click.echo(name)
    elif any(each.rows for each in found):
        _show_tables(asked, found)
    elif not first.names:
        namespaced = first.namespace and any(one.type not in _NODE_WIDE for one in asked)
        where = f" in {first.namespace} namespace" if namespaced else ""
        click.echo(f"No resources found{where}.", err=True)


def _show_tables(asked: Sequence[Asked], found: Sequence[Found]) -> None:
    """A table for each type, parted by empty lines; several have the type before each name, as kubectl prints them."""
    several, shown = len(asked) > 1, False
    for one, each in zip(asked, found, strict=True):
        if not each.rows:
            continue
        if shown:
            click.echo()
        table.show(each.head, _prefixed(one, each) if several else each.rows, headers=one.headers)
        shown = True


def _prefixed(asked: Asked, found: Found) -> Sequence[Sequence[str]]:
    if "NAME" not in found.head or asked.type == "cgroups":
        return found.rows  # the rows of cgroups name their last part only, as a tree
    at, kind = found.head.index("NAME"), asked.type.removesuffix("s")
    return [[*row[:at], f"{kind}/{row[at]}", *row[at + 1 :]] for row in found.rows]


def _whole(asked: Sequence[Asked], found: Sequence[Found], position: str) -> Any:
    """The one object that was asked for by its name, else a List."""
    items = [item for each in found for item in each.items]
    if len(asked) == 1 and len(asked[0].names) == 1 and len(items) == 1:
        return items[0]
    whole = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": position}}
    return {**whole, "items": items}
