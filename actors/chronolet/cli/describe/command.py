"""`chronolet describe`: prints a page about a pod, a device or the node, with its events.

Input: names. Output: text in kubectl's format. The events at the end of a pod's page cover its whole life.
Next: the `_section` modules, which format the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from chronolet.cli.completion.candidates import types_then_pods
from chronolet.cli.describe import device_section, node_section, probe_section
from chronolet.cli.describe.pod_section import described
from chronolet.cli.errors import Failure, not_found
from chronolet.cli.get import devices, nodes, pod_rows, selecting
from chronolet.cli.get.api_form import api_pods
from chronolet.cli.naming import types_and_names
from chronolet.cli.options import Command, at_option, namespace_option, with_settings
from chronolet.cli.session import Session, session
from chronolet.history import kube_events
from chronolet.history.entries import before
from chronolet.history.state import Moment
from chronolet.kube_events.view import correlated
from chronolet.node.settings.settings import Settings
from chronolet_schemas.kube_events import Post, Recorded

_EVENTS_MS = 24 * 3_600_000
_SLACK = 1_000
"""The tolerated clock skew between the agent and the log's server, in milliseconds."""


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="((pod|device|node) [NAME...] | TYPE/NAME...)",
    shell_complete=types_then_pods,
)
@selecting.options
@at_option
@click.option("-A", "--all-namespaces", is_flag=True, help="describe pods across all namespaces")
def command(
    *,
    settings: Settings,
    namespace: str,
    words: Sequence[str],
    selector: selecting.Predicate | None,
    field_selector: selecting.Predicate | None,
    all_namespaces: bool,
    at: str | None,
) -> None:
    """Show details of pods, devices or the node. Without names: all pods in the namespace, or all devices.

    The history of a device lists all its owners.
    """
    type_, names = types_and_names(words, ("pods", "devices", "nodes"))
    if names and (all_namespaces or selector or field_selector):
        raise click.UsageError("specify either names, or a selector or -A.")
    if type_ != "pods":
        (_describe_devices if type_ == "devices" else _describe_node)(settings, names, at)
        return
    selected = selecting.chosen(selector, field_selector)
    with session(settings, at=at) as node:
        moment = node.state("pod", "prober", pods=[f"{namespace}/{name}" for name in names])
        everything = [
            pod
            for pod in api_pods(moment, node.settings.node)
            if (all_namespaces or pod["metadata"]["namespace"] == namespace) and selected(pod)
        ]
        known = {pod["metadata"]["name"]: pod for pod in everything}
        found = [known[name] for name in names if name in known] if names else everything
        for index, pod in enumerate(found):
            click.echo("\n\n" if index else "", nl=False)
            for line in described(pod, _events(node, pod), node.now(), _probes(node, moment, pod)):
                click.echo(line)
    if not names and not found:
        click.echo("No resources found" + ("." if all_namespaces else f" in {namespace} namespace."), err=True)
    missing = [not_found("pods", name) for name in names if name not in known]
    if missing:
        raise Failure(*missing)


def _describe_devices(settings: Settings, names: Sequence[str], at: str | None) -> None:
    """Describe all devices or those with these names. A removed device must be named in full: resource and id."""
    with session(settings, at=at) as node:
        state = devices.state_of(node.state("devices"))
        everything = devices.of(state)
        for line in device_section.resources(state, node.now()) if everything and not names else ():
            click.echo(line)
        found = [one for one in everything if not names or devices.is_named(one, names)]
        missing = [name for name in names if not any(devices.is_named(one, (name,)) for one in found)]
        found += [devices.gone(name) for name in missing if name.count("/") > 1]
        shown = 0 if names else 1
        for one in found:
            past = list(device_section.history(node.entries(wanted=device_section.WANTED), one["resource"], one["id"]))
            if not past:
                continue
            click.echo("\n\n" if shown else "", nl=False)
            for line in device_section.described(one, past, node.now()):
                click.echo(line)
            shown += 1
            missing = [name for name in missing if name != devices.name_of(one)]
    if not names and not found:
        click.echo("No resources found.", err=True)
    if missing:
        raise Failure(*(not_found("devices", name) for name in missing))


def _describe_node(settings: Settings, names: Sequence[str], at: str | None) -> None:
    """Describe the local node, with its events of the last day."""
    with session(settings, at=at) as node:
        if not names or settings.node in names:
            begin = before(node.now() - _EVENTS_MS)
            events = kube_events.recorded(
                node.entries(begin, kube_events.WANTED), lambda one: _is_about(one, settings.node)
            )
            states = node.state("pod").states["pod"].values()
            for line in node_section.described(nodes.of(node), states, correlated(events), node.now()):
                click.echo(line)
    if missing := [not_found("nodes", name) for name in names if name != settings.node]:
        raise Failure(*missing)


def _is_about(one: Recorded, name: str) -> bool:
    return (one.object_kind, one.name) == ("Node", name)


def _probes(node: Session, moment: Moment, pod: dict[str, Any]) -> probe_section.Probes:
    uid = pod["metadata"]["uid"]
    states = [state for state in moment.states.get("prober", {}).values() if state.uid == uid]
    if not states:  # no need to read the stream of results
        return {}
    now, results = node.now(), node.services.results(node.settings)
    if node.at is not None:
        results = (one for one in results if int(one.at) <= now)
    return probe_section.described(states, results, now)


def _events(node: Session, pod: dict[str, Any]) -> Sequence[Post]:
    metadata = pod["metadata"]
    # Events from before the pod was accepted are about an earlier pod of the same name.
    begin = before(pod_rows.milliseconds(metadata.get("creationTimestamp")) - _SLACK)
    about_pod = kube_events.about("Pod", metadata["namespace"], metadata["name"], metadata["uid"])
    return correlated(kube_events.recorded(node.entries(begin, kube_events.WANTED), about_pod))
