"""What `get` shows of each type: which objects are asked for, and the rows and names that show them.

Comes in: a session, what was asked for. Goes out: `Found`, and a line for each name that was not found. Next: `get`,
which prints it. `pods`, `actors` and so on make the rows.
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


class Asked(NamedTuple):
    """What is to be shown, and how."""

    type: str
    names: tuple[str, ...]
    """Empty: all there are."""
    namespace: str | None
    """None: all of them."""
    output: str | None
    headers: bool
    labels: bool
    """In a column of their own."""
    wanted: selecting.Wanted
    order: sorting.Order | None
    events: event_options.Selection

    def names_one_of(self, *names: str) -> bool:
        """Whether it is asked for by one of these."""
        return any(name in self.names for name in names)

    def sorted(self, items: Sequence[Any]) -> Sequence[Any]:
        """In the order that was asked for, else as they are."""
        return self.order(items) if self.order else items


class Found(NamedTuple):
    """What there is: plain objects, and the table that shows them."""

    items: Sequence[Any]
    names: Sequence[str]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def missing_pods(asked: Asked, chosen: Sequence[Any]) -> list[str]:
    """A line for each name that none of these pods has."""
    known = {pod["metadata"]["name"] for pod in chosen}
    return [not_found("pods", name) for name in asked.names if name not in known]


def _pods(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    kinds = ("pod",) if asked.output in (None, "wide", "name") else ("pod", "devices")
    everything = api_pods(node.state(*kinds), node.settings.node)
    chosen = [
        pod for pod in everything if asked.namespace in (None, pod["metadata"]["namespace"]) and asked.wanted(pod)
    ]
    missing = missing_pods(asked, chosen)
    if asked.names:
        chosen = [pod for name in asked.names for pod in chosen if pod["metadata"]["name"] == name]
    chosen = list(asked.sorted(chosen))
    namespaced, wide, now = asked.namespace is None, asked.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"pod/{pod['metadata']['name']}" for pod in chosen],
        head=pods.head(namespaced=namespaced, wide=wide, labelled=asked.labels),
        rows=[pods.row(pod, now, namespaced=namespaced, wide=wide, labelled=asked.labels) for pod in chosen],
    )
    return found, missing


def _containers(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    of = [pod for pod in api_pods(node.state("pod"), node.settings.node) if asked.wanted(pod)]
    chosen = asked.sorted(
        [
            one
            for one in containers.of(of)
            if asked.namespace in (None, one["namespace"]) and (not asked.names or one["name"] in asked.names)
        ]
    )
    known = {one["name"] for one in chosen}
    missing = [not_found("containers", name) for name in asked.names if name not in known]
    namespaced, wide, now = asked.namespace is None, asked.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"container/{one['pod']}/{one['name']}" for one in chosen],
        head=containers.head(namespaced=namespaced, wide=wide),
        rows=[containers.row(one, now, namespaced=namespaced, wide=wide) for one in chosen],
    )
    return found, missing


def _images(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    everything = images.of(node)
    chosen = [one for one in everything if not asked.names or any(images.is_meant(one, name) for name in asked.names)]
    missing = [
        not_found("images", name) for name in asked.names if not any(images.is_meant(one, name) for one in chosen)
    ]
    chosen = list(asked.sorted(chosen))
    found = Found(
        items=chosen,
        names=[f"image/{one['id']}" for one in chosen],
        head=images.HEAD,
        rows=[images.row(one, node.now()) for one in chosen],
    )
    return found, missing


def _actors(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    everything = actors.of(node)
    chosen = [one for one in everything if not asked.names or one["name"] in asked.names or one["kind"] in asked.names]
    known = {one[field] for one in chosen for field in ("name", "kind")}
    missing = [not_found("actors", name) for name in asked.names if name not in known]
    found = Found(
        items=chosen,
        names=[f"actor/{one['name']}" for one in chosen],
        head=actors.HEAD,
        rows=[actors.row(one, node.now()) for one in chosen],
    )
    return found, missing


def _devices(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    everything = devices.of(devices.known(node.state("devices")))
    chosen = asked.sorted([one for one in everything if not asked.names or devices.is_named(one, asked.names)])
    missing = [
        not_found("devices", name) for name in asked.names if not any(devices.is_named(one, (name,)) for one in chosen)
    ]
    wide = asked.output == "wide"
    found = Found(
        items=chosen,
        names=[f"device/{devices.name_of(one)}" for one in chosen],
        head=devices.head(wide=wide),
        rows=[devices.row(one, node.now(), wide=wide) for one in chosen],
    )
    return found, missing


def _events(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    wanted = wanted_events(node, asked)
    with closing(asked.events.source(node)) as source:
        chosen = list(asked.sorted([event for event in source.now() if wanted(event)]))
    known = {event["metadata"]["name"] for event in chosen}
    missing = [not_found("events", name) for name in asked.names if name not in known]
    namespaced, wide, now = asked.namespace is None, asked.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"event/{event['metadata']['name']}" for event in chosen],
        head=kube_events.head(namespaced=namespaced, wide=wide),
        rows=[kube_events.row(event, now, namespaced=namespaced, wide=wide) for event in chosen],
    )
    return found, missing


def wanted_events(node: Session, asked: Asked) -> Callable[[Any], bool]:
    """Whether an event is asked for."""
    chosen = asked.events.chosen(node, asked.namespace)
    return lambda event: (
        chosen(event) and (not asked.names or event["metadata"]["name"] in asked.names) and asked.wanted(event)
    )


def _cgroups(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    everything = cgroups.of(node)
    chosen = [one for one in everything if not asked.names or asked.names_one_of(one["name"], one["pod"], one["uid"])]
    known = {one[field] for one in chosen for field in ("name", "pod", "uid")}
    missing = [not_found("cgroups", name) for name in asked.names if name not in known]
    wide = asked.output == "wide"
    found = Found(
        items=chosen,
        names=[f"cgroup/{one['name']}" for one in chosen],
        head=cgroups.head(wide=wide),
        rows=[cgroups.row(one, wide=wide) for one in chosen],
    )
    return found, missing


def _nodes(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    one = nodes.of(node)
    name = one["metadata"]["name"]
    chosen = [one] if asked.wanted(one) and (not asked.names or name in asked.names) else []
    missing = [not_found("nodes", wanted) for wanted in asked.names if wanted != name]
    wide, now = asked.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"node/{name}" for _ in chosen],
        head=nodes.head(wide=wide, labelled=asked.labels),
        rows=[nodes.row(each, now, wide=wide, labelled=asked.labels) for each in chosen],
    )
    return found, missing


FINDERS: dict[str, Callable[[Session, Asked], tuple[Found, list[str]]]] = {
    "pods": _pods,
    "containers": _containers,
    "devices": _devices,
    "images": _images,
    "actors": _actors,
    "events": _events,
    "cgroups": _cgroups,
    "nodes": _nodes,
}
"""How each type is found: what there is of it, and a line for each name that nothing has."""
