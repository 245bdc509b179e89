"""`chronolet get`: pods, containers, devices, images, actors, events and cgroups, as the log has them.

Comes in: a type, names, a form. Goes out: a table, names, JSON, YAML, or what a JSONPath finds.
Next: `pods`, `actors` and so on, which make the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple, NoReturn

import click

from chronolet.cli import (
    actors,
    cgroups,
    containers,
    devices,
    event_options,
    events,
    images,
    kube_events,
    pods,
    selecting,
    sorting,
    table,
)
from chronolet.cli.completing import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.forms import FORMS, form, forms, show_object
from chronolet.cli.naming import types_and_names
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.podview import api_pods
from chronolet.cli.session import Session, session
from chronolet.cli.watch import follow, shower
from chronolet.cli.watching import Pods
from chronolet.node.settings import Settings

_NODE_WIDE = ("devices", "images", "actors", "cgroups")
"""What belongs to no namespace."""


class Asked(NamedTuple):
    """What is to be shown, and how."""

    type: str
    names: tuple[str, ...]
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


@click.command(cls=Command, epilog=f"{actors.HELP}\n\n{cgroups.HELP}")
@with_settings()
@namespace_option
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="(pods|containers|devices|images|actors|events|cgroups) [NAME...]",
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
    """Show pods, containers, devices, images, actors, events or cgroups."""
    type_, names = types_and_names(words, ("pods", "containers", "devices", "images", "actors", "events", "cgroups"))
    selected = selector is not None or field_selector is not None
    asked = Asked(
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
    _check(asked, watching=watching, selected=selected)
    with session(settings) as node:
        if watching:
            _watch(node, asked)
        found, missing = _FINDERS[asked.type](node, asked)
        position = str(node.store.last())
    _show(asked, found, position)
    if missing:
        raise Failure(*missing)


def _check(asked: Asked, *, watching: bool, selected: bool) -> None:
    if watching and asked.type not in ("pods", "events"):
        raise click.UsageError(f"found --watch with {asked.type}, expected pods or events.")
    if asked.events != event_options.Selection() and asked.type != "events":
        raise click.UsageError(f"found --for, --types, --since or --all with {asked.type}, expected events.")
    if selected and asked.type in _NODE_WIDE:
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
    if missing := _missing(asked, chosen):
        raise Failure(*missing)
    show = shower(node, asked.output, namespaced=asked.namespace is None, headers=asked.headers, labels=asked.labels)
    follow(now, lambda pod: _is_asked(asked, pod["metadata"]) and asked.wanted(pod), show)
    raise AssertionError("`follow` ended")


def _is_asked(asked: Asked, metadata: Mapping[str, Any]) -> bool:
    return asked.namespace in (None, metadata["namespace"]) and (not asked.names or metadata["name"] in asked.names)


def _missing(asked: Asked, chosen: Sequence[Any]) -> list[str]:
    known = {pod["metadata"]["name"] for pod in chosen}
    where = f' in namespace "{asked.namespace}"' if asked.namespace else ""
    return [f'pod "{name}" not found{where}' for name in asked.names if name not in known]


def _pods(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    kinds = ("pod",) if asked.output in (None, "wide", "name") else ("pod", "devices")
    everything = api_pods(node.state(*kinds), node.settings.node)
    chosen = [
        pod for pod in everything if asked.namespace in (None, pod["metadata"]["namespace"]) and asked.wanted(pod)
    ]
    missing = _missing(asked, chosen)
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
    missing = [f'container "{name}" not found' for name in asked.names if name not in known]
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
        f'image "{name}" not found' for name in asked.names if not any(images.is_meant(one, name) for one in chosen)
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
    missing = [f'actor "{name}" not found' for name in asked.names if name not in known]
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
        f'device "{name}" not found'
        for name in asked.names
        if not any(devices.is_named(one, (name,)) for one in chosen)
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
    wanted = _wanted_events(node, asked)
    with closing(asked.events.source(node)) as source:
        chosen = list(asked.sorted([event for event in source.now() if wanted(event)]))
    known = {event["metadata"]["name"] for event in chosen}
    missing = [f'event "{name}" not found' for name in asked.names if name not in known]
    namespaced, wide, now = asked.namespace is None, asked.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"event/{event['metadata']['name']}" for event in chosen],
        head=kube_events.head(namespaced=namespaced, wide=wide),
        rows=[kube_events.row(event, now, namespaced=namespaced, wide=wide) for event in chosen],
    )
    return found, missing


def _wanted_events(node: Session, asked: Asked) -> Callable[[Any], bool]:
    chosen = asked.events.chosen(node, asked.namespace)
    return lambda event: (
        chosen(event) and (not asked.names or event["metadata"]["name"] in asked.names) and asked.wanted(event)
    )


def _watch_events(node: Session, asked: Asked) -> NoReturn:
    wanted, source = _wanted_events(node, asked), asked.events.source(node)
    found = [event for event in source.now() if wanted(event)]
    show = events.shower(node, asked.output, namespaced=asked.namespace is None, headers=asked.headers, counted=False)
    events.follow(source, found, wanted, show)


def _cgroups(node: Session, asked: Asked) -> tuple[Found, list[str]]:
    everything = cgroups.of(node)
    chosen = [one for one in everything if not asked.names or asked.names_one_of(one["name"], one["pod"], one["uid"])]
    known = {one[field] for one in chosen for field in ("name", "pod", "uid")}
    missing = [f'cgroup "{name}" not found' for name in asked.names if name not in known]
    wide = asked.output == "wide"
    found = Found(
        items=chosen,
        names=[f"cgroup/{one['name']}" for one in chosen],
        head=cgroups.head(wide=wide),
        rows=[cgroups.row(one, wide=wide) for one in chosen],
    )
    return found, missing


_FINDERS: dict[str, Callable[[Session, Asked], tuple[Found, list[str]]]] = {
    "pods": _pods,
    "containers": _containers,
    "images": _images,
    "devices": _devices,
    "actors": _actors,
    "cgroups": _cgroups,
    "events": _events,
}


def _show(asked: Asked, found: Found, position: str) -> None:
    if asked.output and asked.output not in ("wide", "name"):
        if found.items or not asked.names:
            show_object(_whole(asked, found, position), asked.output)
    elif asked.output == "name":
        for name in found.names:
            click.echo(name)
    elif found.rows:
        table.show(found.head, found.rows, headers=asked.headers)
    elif not asked.names:
        where = f" in {asked.namespace} namespace" if asked.namespace and asked.type not in _NODE_WIDE else ""
        click.echo(f"No resources found{where}.", err=True)


def _whole(asked: Asked, found: Found, position: str) -> Any:
    """The one object that was asked for by its name, else a List."""
    if len(asked.names) == 1 and len(found.items) == 1:
        return found.items[0]
    whole = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": position}}
    return {**whole, "items": list(found.items)}
