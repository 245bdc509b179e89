"""Lists KubeEvents for `get events`.

Input: a session, a query. Output: `Found`; the filter for the requested events. Next: `command`. `kube_events` reads
the events and formats the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from chronolet.cli.errors import not_found
from chronolet.cli.get.query import Found, Query
from chronolet.cli.history import kube_events
from chronolet.cli.session import Session


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    matches = event_filter(node, query)
    with closing(query.events.source(node)) as source:
        chosen = list(query.sorted([event for event in source.now() if matches(event)]))
    known = {event["metadata"]["name"] for event in chosen}
    missing = [not_found("events", name) for name in query.names if name not in known]
    namespaced, wide, now = query.namespace is None, query.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"event/{event['metadata']['name']}" for event in chosen],
        head=kube_events.head(namespaced=namespaced, wide=wide),
        rows=[kube_events.row(event, now, namespaced=namespaced, wide=wide) for event in chosen],
    )
    return found, missing


def event_filter(node: Session, query: Query) -> Callable[[Any], bool]:
    """Return the filter for the requested events."""
    chosen = query.events.chosen(node, query.namespace)
    return lambda event: (
        chosen(event) and (not query.names or event["metadata"]["name"] in query.names) and query.matches(event)
    )
