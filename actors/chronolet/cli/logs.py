"""`chronolet logs`: what a container has written.

Comes in: a pod, a container. Goes out: its output, stdout and stderr each where they belong. The container's id comes
from the node's log, the output from Docker. Source: pkg/kubelet (validateContainerLogStatus), kubectl logs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from chronolet.cli import completing, pods
from chronolet.cli.errors import Failure
from chronolet.cli.naming import pod_name
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.podview import api_pod
from chronolet.cli.session import session
from chronolet.node.settings import Settings
from chronolet.node.values import duration
from chronolet.ports.runtime import Refusal

Object = dict[str, Any]

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@click.command(cls=Command)
@with_settings("docker")
@namespace_option
@click.argument("name", metavar="(POD | pod/POD)", shell_complete=completing.pods)
@click.argument("second", required=False, metavar="[CONTAINER]")
@click.option("-c", "--container", help="which of the pod's containers")
@click.option("-f", "--follow", is_flag=True, help="go on with what comes")
@click.option("-p", "--previous", is_flag=True, help="of the run before the present one")
@click.option("--tail", type=click.IntRange(min=-1), default=-1, metavar="N", help="only the last N lines; -1 for all")
@click.option("--since", metavar="DURATION", help="only what is not older than this, such as 10m")
@click.option("--timestamps", is_flag=True, help="each line with its time")
def command(
    *,
    settings: Settings,
    namespace: str,
    name: str,
    second: str | None,
    container: str | None,
    follow: bool,
    previous: bool,
    tail: int,
    since: str | None,
    timestamps: bool,
) -> None:
    """Print a container's output."""
    if container and second:
        raise click.UsageError("found a container both as an argument and by -c, expected one of them.")
    with session(settings) as node:
        pod = api_pod(node.state("pod"), node.settings.node, namespace, pod_name(name))
        from_ = node.now() - duration("--since", since) if since else None
    container_id = chosen(pod, container or second, previous=previous)
    runtime = node.services.runtime(settings)
    try:
        pieces = runtime.logs(
            container_id,
            follow=follow and not previous,
            tail=None if tail < 0 else tail,
            since=from_,
            timestamps=timestamps,
        )
        _copy(pieces)
    except Refusal as refusal:
        if refusal.kind != "not_found":
            raise
        raise Failure(
            f"container {container_id[:12]} of pod {name} was removed from Docker, and its output with it"
        ) from refusal
    finally:
        runtime.close()


def chosen(pod: Object, name: str | None, *, previous: bool) -> str:
    """The runtime's id of the container whose output is asked for; a Failure that says why there is none."""
    statuses = {one["name"]: one for one in pod.get("status", {}).get("containerStatuses", [])}
    about = f"in pod {pod['metadata']['name']}"
    if name is None:
        name = _default(pod, list(statuses))
    if name not in statuses:
        raise Failure(
            f"container {name} is not valid for pod {pod['metadata']['name']}, expected {', '.join(statuses)}"
        )
    status = statuses[name]
    last = status.get("lastState", {}).get("terminated", {}).get("containerID", "")
    if previous:
        if not last:
            raise Failure(f'previous terminated container "{name}" {about} not found')
        return pods.bare_id(last)
    state = status.get("state", {})
    own = status.get("containerID", "") if "waiting" not in state else last
    if not own:
        reason = state.get("waiting", {}).get("reason") or "it was never started"
        raise Failure(f'container "{name}" {about} is waiting to start: {reason}')
    return pods.bare_id(own)


def _default(pod: Object, names: list[str]) -> str:
    if not names:
        raise Failure(f"pod {pod['metadata']['name']} has no containers yet")
    asked: str = pod["metadata"].get("annotations", {}).get(DEFAULT_CONTAINER, "")
    if asked in names:
        return asked
    if len(names) > 1:
        click.echo(f'Defaulted container "{names[0]}" out of: {", ".join(names)}', err=True)
    return names[0]


def _copy(pieces: Iterator[tuple[str, bytes]]) -> None:
    for stream, piece in pieces:
        target = sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
        target.write(piece)
        target.flush()
