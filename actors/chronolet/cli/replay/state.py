"""`chronolet replay --at`: prints the whole state of the node at one moment.

Input: a session at that moment, what is wanted. Output: the tables of `get`, or a List as JSON. Next: `get`, whose
modules list the objects.
"""

from __future__ import annotations

import click

from chronolet.cli.errors import Failure
from chronolet.cli.get import command as get
from chronolet.cli.get.query import KINDS, Query
from chronolet.cli.history import event_options
from chronolet.cli.replay import printing
from chronolet.cli.replay.wanted import Wanted
from chronolet.cli.session import Session

_TABLES = {"pods": ("pods", "containers"), "devices": ("devices",), "images": ("images",), "nodes": ("nodes",)}
"""The types of `get` that show the objects of a type."""


def show(node: Session, wanted: Wanted, namespace: str, output: str | None) -> None:
    """Print the state. Raises Failure if a pod that is asked for does not exist then."""
    queries = [_query(table, wanted, namespace, output) for type_ in wanted.types for table in _TABLES[type_]]
    node.preload(*{kind: None for one in queries for kind in KINDS[one.type]})
    results = [get.found_by(node, one) for one in queries]
    if output is None:
        last = node.last()
        click.echo(printing.moment(node.settings.node, last.n, node.now()))
        click.echo()
    get.show(queries, [found for found, _ in results], str(node.last()))
    if missing := [line for _, lines in results for line in lines]:
        raise Failure(*missing)


def _query(type_: str, wanted: Wanted, namespace: str, output: str | None) -> Query:
    """Return the query for one table: all namespaces, or the pods that are asked for and their containers."""
    pods = frozenset(wanted.pods)

    def matches(item: dict[str, object]) -> bool:
        metadata = item["metadata"]
        assert isinstance(metadata, dict)  # noqa: S101 - every object of the API has it
        return not pods or f"{metadata['namespace']}/{metadata['name']}" in pods

    names = tuple(pod.partition("/")[2] for pod in wanted.pods) if type_ == "pods" else ()
    where = namespace if pods and type_ in ("pods", "containers") else None
    return Query(type_, names, where, output, True, False, matches, None, event_options.Selection())
