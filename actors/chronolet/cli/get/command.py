"""`chronolet get`: lists pods, containers, devices, images, actors, events, cgroups and nodes from the log.

Input: types, names, an output format. Output: tables, names, JSON, YAML, or the results of a JSONPath template.
Next: the modules in `TYPES`, which find the objects.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from chronolet.cli.completion.candidates import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.get import selecting, sorting
from chronolet.cli.get.query import KINDS, Found, Query
from chronolet.cli.history import event_options
from chronolet.cli.naming import asked_types
from chronolet.cli.options import Command, at_option, namespace_option, with_settings
from chronolet.cli.printing import table
from chronolet.cli.printing.forms import FORMS, form, forms, show_object

if TYPE_CHECKING:  # `--help` needs no session
    from chronolet.cli.session import Session
    from chronolet.node.settings.settings import Settings

TYPES = ("pods", "containers", "devices", "images", "actors", "events", "cgroups", "nodes")
"""The resource types. Each is also the name of a module in this package, whose function `find` returns the objects
that a query selects.
"""
_NODE_WIDE = ("devices", "images", "actors", "cgroups", "nodes")
"""The types that have no namespace."""
_TYPES = """\b
Types: pods, containers, devices, images, actors, events, cgroups, nodes.
Separate several with commas, such as pods,events."""
_ACTORS_HELP = """\b
Columns of `get actors`, one row per shard:
  VERSION   number of committed steps
  LAG       log entries for the shard that are not yet part of a step;
            entries without effect become part of one within about a minute
  WAITING   commands in its mailbox
  SNAPSHOT  log position of its latest snapshot"""
_CGROUPS_HELP = """\b
Values in `get cgroups` are wanted/found: the value that qos sets, and the
content of the kernel's file; `?` if this machine has no such cgroup."""


@click.command(cls=Command, epilog=f"{_TYPES}\n\n{_ACTORS_HELP}\n\n{_CGROUPS_HELP}")
@with_settings()
@namespace_option
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="(TYPE[,TYPE...] [NAME...] | TYPE/NAME...)",
    shell_complete=types_then_pods,
)
@click.option("-A", "--all-namespaces", is_flag=True, help="list objects across all namespaces")
@click.option("-o", "--output", callback=form, shell_complete=forms, metavar=FORMS, help="output format")
@click.option("-w", "--watch", "watching", is_flag=True, help="after listing, watch for changes (pods or events)")
@selecting.options
@event_options.options
@click.option(
    "--sort-by", "order", callback=sorting.order, metavar="JSONPATH", help="sort by this field, such as .metadata.name"
)
@at_option
@click.option("--from", "begin", metavar="MOMENT", help="with -w: begin at this moment, as for --at (pods)")
@click.option("--show-labels", is_flag=True, help="show labels as the last column")
@click.option("--no-headers", is_flag=True, help="do not print headers")
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
    selector: selecting.Predicate | None,
    field_selector: selecting.Predicate | None,
    order: sorting.Order | None,
    about: tuple[str, str] | None,
    types: tuple[str, ...],
    age: int,
    whole: bool,
    at: str | None,
    begin: str | None,
) -> None:
    """List pods, containers, events and other objects."""
    selected = selector is not None or field_selector is not None
    queries = [
        Query(
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
        for type_, names in asked_types(words, TYPES)
    ]
    _check(queries, watching=watching, selected=selected, at=at is not None)
    if begin is not None and not (watching and queries[0].type == "pods"):
        raise click.UsageError("found --from, expected it with --watch and pods.")
    from chronolet.cli.session import session  # noqa: PLC0415 - `--help` needs none

    with session(settings, at=at) as node:
        if watching:
            if begin is not None:
                node.go_to(begin, "--from")
            _watch(node, queries[0])
        if at is not None and len(queries) > 1:
            node.preload(*{kind: None for one in queries for kind in KINDS[one.type]})
        results = [found_by(node, one) for one in queries]
        position = str(node.last())
    found = [each for each, _ in results]
    show(queries, found, position)
    if missing := [line for _, lines in results for line in lines]:
        raise Failure(*missing)


def found_by(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    found: tuple[Found, list[str]] = importlib.import_module(f"chronolet.cli.get.{query.type}").find(node, query)
    return found


def _check(queries: Sequence[Query], *, watching: bool, selected: bool, at: bool) -> None:
    for one in queries:
        _check_one(one, watching=watching, selected=selected)
        if at and one.type not in KINDS:  # leases, lags and the kernel's values are of the present
            raise click.UsageError(f"found --at with {one.type}, expected types whose past the log records.")
    if at and watching:
        raise click.UsageError("found --at with --watch, expected one of them.")
    if watching and len(queries) > 1:
        raise click.UsageError("you may only specify a single resource type with --watch.")
    if queries[0].events != event_options.Selection() and all(one.type != "events" for one in queries):
        raise click.UsageError(f"found --for, --types, --since or --all with {queries[0].type}, expected events.")


def _check_one(query: Query, *, watching: bool, selected: bool) -> None:
    if watching and query.type not in ("pods", "events"):
        raise click.UsageError(f"found --watch with {query.type}, expected pods or events.")
    if selected and query.type in _NODE_WIDE and query.type != "nodes":
        raise click.UsageError(f"found a selector with {query.type}, expected pods or containers.")
    if selected and query.names:
        raise click.UsageError("name cannot be provided when a selector is specified.")
    if query.names and query.namespace is None and query.type == "pods":
        raise click.UsageError("a resource cannot be retrieved by name across all namespaces.")


def _watch(node: Session, query: Query) -> NoReturn:
    """Watch until interrupted. Raises Failure if a name does not exist."""
    if query.type == "events":
        _watch_events(node, query)
    from chronolet.cli.get.pods import missing_pods  # noqa: PLC0415 - only --watch needs them
    from chronolet.cli.watch.pod_changes import Pods  # noqa: PLC0415
    from chronolet.cli.watch.watch_pods import follow, printer  # noqa: PLC0415

    now = Pods(node)
    chosen = [pod for pod in now.now.values() if query.namespace in (None, pod["metadata"]["namespace"])]
    if missing := missing_pods(query, chosen):
        raise Failure(*missing)
    show = printer(node, query.output, namespaced=query.namespace is None, headers=query.headers, labels=query.labels)
    follow(now, lambda pod: _is_selected(query, pod["metadata"]) and query.matches(pod), show)
    raise AssertionError("`follow` ended")


def _watch_events(node: Session, query: Query) -> NoReturn:
    from chronolet.cli.get.events import event_filter  # noqa: PLC0415 - only --watch needs them
    from chronolet.cli.history import events  # noqa: PLC0415

    matches, source = event_filter(node, query), query.events.source(node)
    found = [event for event in source.now() if matches(event)]
    show = events.printer(node, query.output, namespaced=query.namespace is None, headers=query.headers, counted=False)
    events.follow(source, found, matches, show)


def _is_selected(query: Query, metadata: Mapping[str, Any]) -> bool:
    return query.namespace in (None, metadata["namespace"]) and (not query.names or metadata["name"] in query.names)


def show(queries: Sequence[Query], found: Sequence[Found], position: str) -> None:
    """Print what was found for each query, in their format. `position`: that of the last entry read."""
    first = queries[0]
    if first.output and first.output not in ("wide", "name"):
        if any(each.items for each in found) or not first.names:
            show_object(_whole(queries, found, position), first.output)
    elif first.output == "name":
        for name in (name for each in found for name in each.names):
            click.echo(name)
    elif any(each.rows for each in found):
        _show_tables(queries, found)
    elif not first.names:
        namespaced = first.namespace and any(one.type not in _NODE_WIDE for one in queries)
        where = f" in {first.namespace} namespace" if namespaced else ""
        click.echo(f"No resources found{where}.", err=True)


def _show_tables(queries: Sequence[Query], found: Sequence[Found]) -> None:
    """Print the tables, with empty lines in between. If there are several, names get a type prefix, as in kubectl."""
    several, shown = len(queries) > 1, False
    for one, each in zip(queries, found, strict=True):
        if not each.rows:
            continue
        if shown:
            click.echo()
        table.show(each.head, _prefixed(one, each) if several else each.rows, headers=one.headers)
        shown = True


def _prefixed(query: Query, found: Found) -> Sequence[Sequence[str]]:
    if "NAME" not in found.head or query.type == "cgroups":
        return found.rows  # a cgroup's row has only the last part of its name, as a tree
    at, kind = found.head.index("NAME"), query.type.removesuffix("s")
    return [[*row[:at], f"{kind}/{row[at]}", *row[at + 1 :]] for row in found.rows]


def _whole(queries: Sequence[Query], found: Sequence[Found], position: str) -> Any:
    """Return the object itself if a single one was requested by name, else a List."""
    items = [item for each in found for item in each.items]
    if len(queries) == 1 and len(queries[0].names) == 1 and len(items) == 1:
        return items[0]
    whole = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": position}}
    return {**whole, "items": items}
