"""Finds the objects of each type for `get`, with their rows and names.

Input: a session, a query. Output: `Found`, and a line for each name that was not found. Next: `get`, which prints
them. `pods`, `actors` and so on build the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from chronolet.cli.errors import not_found
from chronolet.cli.get import actors, cgroups, containers, devices, images, nodes, pods, selecting, sorting
from chronolet.cli.get.podview import api_pods
from chronolet.cli.history import event_options, kube_events
from chronolet.cli.session import Session


class Query(NamedTuple):
    """The objects of one type to show, and their format."""

    type: str
    names: tuple[str, ...]
    """Empty: all."""
    namespace: str | None
    """None: all namespaces."""
    output: str | None
    headers: bool
    labels: bool
    """Show labels in a column."""
    matches: selecting.Predicate
    order: sorting.Order | None
    events: event_options.Selection

    def names_one_of(self, *names: str) -> bool:
        """Whether one of these names is requested."""
        return any(name in self.names for name in names)

    def sorted(self, items: Sequence[Any]) -> Sequence[Any]:
        """The items in the requested order, else unchanged."""
        return self.order(items) if self.order else items


class Found(NamedTuple):
    """The objects found, as plain data, names and a table."""

    items: Sequence[Any]
    names: Sequence[str]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def missing_pods(query: Query, chosen: Sequence[Any]) -> list[str]:
    """A line for each requested name that none of these pods has."""
    known = {pod["metadata"]["name"] for pod in chosen}
    return [not_found("pods", name) for name in query.names if name not in known]


def _pods(node: Session, query: Query) -> tuple[Found, list[str]]:
    kinds = ("pod",) if query.output in (None, "wide", "name") else ("pod", "devices")
    everything = api_pods(node.state(*kinds), node.settings.node)
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
        head=pods.head(namespaced=namespaced, wide=wide, labelled=query.labels),
        rows=[pods.row(pod, now, namespaced=namespaced, wide=wide, labelled=query.labels) for pod in chosen],
    )
    return found, missing


def _containers(node: Session, query: Query) -> tuple[Found, list[str]]:
    of = [pod for pod in api_pods(node.state("pod"), node.settings.node) if query.matches(pod)]
    chosen = query.sorted(
        [
            one
            for one in containers.of(of)
            if query.namespace in (None, one["namespace"]) and (not query.names or one["name"] in query.names)
        ]
    )
    known = {one["name"] for one in chosen}
    missing = [not_found("containers", name) for name in query.names if name not in known]
    namespaced, wide, now = query.namespace is None, query.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"container/{one['pod']}/{one['name']}" for one in chosen],
        head=containers.head(namespaced=namespaced, wide=wide),
        rows=[containers.row(one, now, namespaced=namespaced, wide=wide) for one in chosen],
    )
    return found, missing


def _images(node: Session, query: Query) -> tuple[Found, list[str]]:
    everything = images.of(node)
    chosen = [one for one in everything if not query.names or any(images.is_meant(one, name) for name in query.names)]
    missing = [
        not_found("images", name) for name in query.names if not any(images.is_meant(one, name) for one in chosen)
    ]
    chosen = list(query.sorted(chosen))
    found = Found(
        items=chosen,
        names=[f"image/{one['id']}" for one in chosen],
        head=images.HEAD,
        rows=[images.row(one, node.now()) for one in chosen],
    )
    return found, missing


def _actors(node: Session, query: Query) -> tuple[Found, list[str]]:
    everything = actors.of(node)
    chosen = [one for one in everything if not query.names or one["name"] in query.names or one["kind"] in query.names]
    known = {one[field] for one in chosen for field in ("name", "kind")}
    missing = [not_found("actors", name) for name in query.names if name not in known]
    found = Found(
        items=chosen,
        names=[f"actor/{one['name']}" for one in chosen],
        head=actors.HEAD,
        rows=[actors.row(one, node.now()) for one in chosen],
    )
    return found, missing


def _devices(node: Session, query: Query) -> tuple[Found, list[str]]:
    everything = devices.of(devices.state_of(node.state("devices")))
    chosen = query.sorted([one for one in everything if not query.names or devices.is_named(one, query.names)])
    missing = [
        not_found("devices", name) for name in query.names if not any(devices.is_named(one, (name,)) for one in chosen)
    ]
    wide = query.output == "wide"
    found = Found(
        items=chosen,
        names=[f"device/{devices.name_of(one)}" for one in chosen],
        head=devices.head(wide=wide),
        rows=[devices.row(one, node.now(), wide=wide) for one in chosen],
    )
    return found, missing


def _events(node: Session, query: Query) -> tuple[Found, list[str]]:
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
    """The filter for the requested events."""
    chosen = query.events.chosen(node, query.namespace)
    return lambda event: (
        chosen(event) and (not query.names or event["metadata"]["name"] in query.names) and query.matches(event)
    )


def _cgroups(node: Session, query: Query) -> tuple[Found, list[str]]:
    everything = cgroups.of(node)
    chosen = [one for one in everything if not query.names or query.names_one_of(one["name"], one["pod"], one["uid"])]
    known = {one[field] for one in chosen for field in ("name", "pod", "uid")}
    missing = [not_found("cgroups", name) for name in query.names if name not in known]
    wide = query.output == "wide"
    found = Found(
        items=chosen,
        names=[f"cgroup/{one['name']}" for one in chosen],
        head=cgroups.head(wide=wide),
        rows=[cgroups.row(one, wide=wide) for one in chosen],
    )
    return found, missing


def _nodes(node: Session, query: Query) -> tuple[Found, list[str]]:
    one = nodes.of(node)
    name = one["metadata"]["name"]
    chosen = [one] if query.matches(one) and (not query.names or name in query.names) else []
    missing = [not_found("nodes", wanted) for wanted in query.names if wanted != name]
    wide, now = query.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"node/{name}" for _ in chosen],
        head=nodes.head(wide=wide, labelled=query.labels),
        rows=[nodes.row(each, now, wide=wide, labelled=query.labels) for each in chosen],
    )
    return found, missing


FINDERS: dict[str, Callable[[Session, Query], tuple[Found, list[str]]]] = {
    "pods": _pods,
    "containers": _containers,
    "devices": _devices,
    "images": _images,
    "actors": _actors,
    "events": _events,
    "cgroups": _cgroups,
    "nodes": _nodes,
}
"""Finder of each type: returns the objects, and a line for each name that was not found."""
