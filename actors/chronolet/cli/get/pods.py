"""Lists pods for `get pods`.

Input: a session, a query. Output: `Found`. Next: `command`. `api_form` converts the pods, `pod_rows` formats the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronolet.cli.errors import not_found
from chronolet.cli.get import pod_rows
from chronolet.cli.get.api_form import api_pods
from chronolet.cli.get.query import Found, Query
from chronolet.cli.session import Session


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    kinds = ("pod",) if query.output in (None, "wide", "name") else ("pod", "devices")
    named = [f"{query.namespace}/{name}" for name in query.names]
    everything = api_pods(node.state(*kinds, pods=named), node.settings.node)
    chosen = [
        pod for pod in everything if query.namespace in (None, pod["metadata"]["namespace"]) and query.matches(pod)
    ]
    missing = missing_pods(query, chosen)
    if query.names:
        chosen = [pod for name in query.names for pod in chosen if pod["metadata"]["name"] == name]
    chosen = list(query.sorted(chosen))
    namespaced, wide, now = query.namespace is None, query.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"pod/{pod['metadata']['name']}" for pod in chosen],
        head=pod_rows.head(namespaced=namespaced, wide=wide, labelled=query.labels),
        rows=[pod_rows.row(pod, now, namespaced=namespaced, wide=wide, labelled=query.labels) for pod in chosen],
    )
    return found, missing


def missing_pods(query: Query, chosen: Sequence[Any]) -> list[str]:
    """Return an error line for each requested name that none of these pods has."""
    known = {pod["metadata"]["name"] for pod in chosen}
    return [not_found("pods", name) for name in query.names if name not in known]
