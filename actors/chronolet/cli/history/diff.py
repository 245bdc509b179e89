"""`chronolet diff`: prints what changed between two moments: the objects' fields, the events in between, or both.

Input: two moments, types and names. Output: a line for each object that was added, removed or changed, with a line for
each field; lines of the log. Next: `get`, whose modules list the objects as they were at a moment.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence

import click

from chronolet.cli.completion.candidates import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.get.query import KINDS, Query
from chronolet.cli.history import event_options, log
from chronolet.cli.history.changes import Key, Object, as_plain, changes, lines
from chronolet.cli.naming import asked_types
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.session import Session, session
from chronolet.history.derived.wanted import concerns_pod
from chronolet.node.settings.settings import Settings
from chronolet_schemas.envelope import Entry

TYPES = ("pods", "devices", "images", "nodes")
_SHOWN = ("objects", "events", "both")


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.option("--from", "begin", required=True, metavar="MOMENT", help="the earlier moment, as for --at of `get`")
@click.option("--to", "end", metavar="MOMENT", help="the later moment [default: now]")
@click.option(
    "--show",
    type=click.Choice(_SHOWN),
    default=_SHOWN[0],
    show_default=True,
    help="the differences between the objects, the log's events in between (if only pods are named: those about them), "
    "or both",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="compare pods across all namespaces")
@click.option("-o", "--output", type=click.Choice(["json"]), help="output format: one JSON object")
@click.argument(
    "words",
    nargs=-1,
    metavar="[TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
    shell_complete=types_then_pods,
)
def command(
    *,
    settings: Settings,
    namespace: str,
    begin: str,
    end: str | None,
    show: str,
    all_namespaces: bool,
    output: str | None,
    words: Sequence[str],
) -> None:
    """Show what changed between two moments. Types: pods, devices, images, nodes; by default all of them."""
    wanted = asked_types(words or (",".join(TYPES),), TYPES)
    queries = [_query(type_, names, None if all_namespaces else namespace) for type_, names in wanted]
    with session(settings) as node:
        first = node.go_to(begin, "--from")
        before, unknown = _objects(node, queries)
        last = node.go_to_now() if end is None else node.go_to(end, "--to")
        if last.position < first.position:
            raise Failure(f"--from: found {begin}, expected a moment before --to")
        after, unknown_later = _objects(node, queries)
        if missing := [line for line in unknown if line in unknown_later]:
            raise Failure(*missing)
        changed = list(changes(before, after)) if show != "events" else []
        entries = [one for one in node.entries(first.position) if _concerns(one, queries)] if show != "objects" else []
    if output:
        found = {"from": str(first.position), "to": str(last.position), "objects": [as_plain(one) for one in changed]}
        click.echo(json.dumps({**found, "events": [json.loads(log.as_json(one)) for one in entries]}))
        return
    for line in (*lines(changed), *map(log.as_line, entries)):
        click.echo(line)
    if not changed and not entries:
        click.echo("No differences.", err=True)


def _query(type_: str, names: tuple[str, ...], namespace: str | None) -> Query:
    nothing = event_options.Selection()
    return Query(type_, names, namespace, "json", False, False, lambda _: True, None, nothing)


def _objects(node: Session, queries: Sequence[Query]) -> tuple[Mapping[Key, Object], Sequence[str]]:
    """Return the objects at the session's moment, and an error line for each name that does not exist then."""
    node.preload(*{kind: None for one in queries for kind in KINDS[one.type]})
    objects: dict[Key, Object] = {}
    missing: list[str] = []
    for query in queries:
        found, errors = importlib.import_module(f"chronolet.cli.get.{query.type}").find(node, query)
        missing += errors
        for name, item in zip(found.names, found.items, strict=True):
            objects[item.get("metadata", {}).get("namespace", ""), name] = item
    return objects, missing


def _concerns(entry: Entry, queries: Sequence[Query]) -> bool:
    """Return whether an entry is about one of the named pods; all are unless only pods are asked for, by name."""
    if not all(one.type == "pods" and one.names for one in queries):
        return True
    return any(concerns_pod(entry, f"{one.namespace}/{name}") for one in queries for name in one.names)
