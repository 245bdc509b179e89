"""`chronolet logs`: prints the output of containers.

Input: a pod, a container. Output: what the container wrote. The container's id comes from the node's log (`log_target`
selects the run), the output from the node's Docker Engine (`engines` selects the engine, `output` writes the output).
Source: kubectl's pkg/cmd/logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import click

from chronolet.cli import engines
from chronolet.cli.completion import candidates
from chronolet.cli.containers import output
from chronolet.cli.containers.log_target import run_of
from chronolet.cli.containers.parts import Part, chosen, parts
from chronolet.cli.engines import Engine
from chronolet.cli.errors import Failure, worded
from chronolet.cli.get import selecting
from chronolet.cli.get.api_form import api_pod, api_pods
from chronolet.cli.naming import pod_name
from chronolet.cli.options import Command, at_option, namespace_option, with_settings
from chronolet.cli.printing import table
from chronolet.cli.session import Session, session
from chronolet.history.state import Moment
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.values import duration
from chronolet.ports.runtime.runtime import Refusal, Runtime

Object = dict[str, Any]


_SELECTED_TAIL = 10
"""The default of `--tail` for each container that a selector matches, as in kubectl."""


class Source(NamedTuple):
    """A container whose output is to be printed."""

    pod: str
    part: Part


class Link(NamedTuple):
    """The runtime to query, and its `Engine`, used to explain why a container is missing."""

    runtime: Runtime
    engine: Engine


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Which part of the output to print, and in what format."""

    follow: bool
    previous: bool
    tail: int | None
    since: int | None
    """Print only output from this time on, in milliseconds since the epoch."""
    timestamps: bool
    limit_bytes: int | None
    prefix: bool
    ignore_errors: bool


@click.command(cls=Command)
@with_settings("docker")
@namespace_option
@click.argument("name", required=False, metavar="(POD | pod/POD)", shell_complete=candidates.pods)
@click.argument("second", required=False, metavar="[CONTAINER]")
@click.option(
    "-l",
    "--selector",
    callback=selecting.labels,
    metavar="SELECTOR",
    help="label selector: a=b, a!=b, a in (b,c), a, !a",
)
@click.option(
    "-c",
    "--container",
    shell_complete=candidates.containers,
    help="container name [default: the pod's default or first container]",
)
@click.option(
    "--all-containers", is_flag=True, help="all containers of the pods: one after another, or together with -f"
)
@click.option("-f", "--follow", is_flag=True, help="stream the output until the container ends")
@click.option("-p", "--previous", is_flag=True, help="print the output of the previous run")
@click.option(
    "--tail",
    type=click.IntRange(min=-1),
    metavar="N",
    help="lines of recent output to print; -1 for all [default: -1; 10 with -l]",
)
@click.option("--since", metavar="DURATION", help="only lines newer than this, such as 10m")
@click.option("--since-time", metavar="TIME", help="only lines after this time, such as 2026-11-21T03:00:00Z")
@at_option
@click.option("--timestamps", is_flag=True, help="include a timestamp on each line")
@click.option("--limit-bytes", type=click.IntRange(min=1), metavar="N", help="maximum bytes to print per container")
@click.option("--prefix", is_flag=True, help="prefix each line with its pod and container")
@click.option("--ignore-errors", is_flag=True, help="treat errors of a container as non-fatal")
@click.option(
    "--max-log-requests",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="maximum number of containers to follow concurrently",
)
def command(
    *,
    settings: Settings,
    namespace: str,
    name: str | None,
    second: str | None,
    selector: selecting.Predicate | None,
    container: str | None,
    all_containers: bool,
    since: str | None,
    since_time: str | None,
    tail: int | None,
    max_log_requests: int,
    at: str | None,
    **flags: Any,
) -> None:
    """Print a container's output. With --at: which run's output it was then, and how to read it."""
    wanted = _wanted(container, second, all_containers=all_containers)
    if (name is None) == (selector is None):
        raise click.UsageError("specify either a pod or a selector.")
    others = {"--follow": flags["follow"], "--since": since, "--since-time": since_time, "--tail": tail is not None}
    others |= {"--timestamps": flags["timestamps"], "--limit-bytes": flags["limit_bytes"], "--prefix": flags["prefix"]}
    if at is not None and (found_flag := next((name for name, value in others.items() if value), "")):
        raise click.UsageError(f"found --at with {found_flag}, expected one of them: --at prints no output.")
    with session(settings, at=at) as node:
        moment = node.state("pod", "pleg", pods=[f"{namespace}/{pod_name(name)}"] if name else ())
        found = _pods(node, moment, namespace, name, selector)
        if node.at is not None:
            _point(node, found, wanted, all_containers=all_containers, previous=flags["previous"])
            return
        engine = engines.of_node(node, moment)
        lines = (-1 if name else _SELECTED_TAIL) if tail is None else tail
        options = LogOptions(tail=None if lines < 0 else lines, since=_since(node, since, since_time), **flags)
    sources = _sources(found, wanted, all_containers=all_containers)
    if options.follow and len(sources) > max_log_requests:
        raise Failure(
            f"you are attempting to follow {len(sources)} log streams, but maximum allowed concurrency is "
            f"{max_log_requests}, use --max-log-requests to increase the limit"
        )
    with closing(node.services.runtime(engine.settings)) as runtime:
        _print(Link(runtime, engine), sources, options)


def _sources(found: Sequence[Object], wanted: str | None, *, all_containers: bool) -> list[Source]:
    return [
        Source(pod["metadata"]["name"], part)
        for pod in found
        for part in (parts(pod) if all_containers else [chosen(pod, wanted)])
    ]


def _point(node: Session, found: Sequence[Object], wanted: str | None, *, all_containers: bool, previous: bool) -> None:
    from chronolet.cli.containers import log_pointers  # noqa: PLC0415 - only --at needs it

    sources = _sources(found, wanted, all_containers=all_containers)
    table.show(log_pointers.HEAD, log_pointers.rows(sources, node.now(), previous=previous))


def _pods(
    node: Session, moment: Moment, namespace: str, name: str | None, selector: selecting.Predicate | None
) -> list[Object]:
    if selector is None:
        return [api_pod(moment, node.settings.node, namespace, pod_name(name or ""))]
    everything = api_pods(moment, node.settings.node)
    found = [pod for pod in everything if pod["metadata"]["namespace"] == namespace and selector(pod)]
    if not found:
        click.echo(f"No resources found in {namespace} namespace.", err=True)
    return found


def _wanted(container: str | None, second: str | None, *, all_containers: bool) -> str | None:
    if container and second:
        raise click.UsageError("only one of -c or an inline [CONTAINER] argument is allowed.")
    if all_containers and (container or second):
        raise click.UsageError(f"--all-containers should not be specified with container name {container or second}.")
    return container or second


def _since(node: Session, since: str | None, since_time: str | None) -> int | None:
    if since and since_time:
        raise click.UsageError("at most one of --since and --since-time may be used.")
    if since:
        return node.now() - duration("--since", since)
    if not since_time:
        return None
    try:
        moment = datetime.fromisoformat(since_time)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise click.UsageError(f"--since-time: found {since_time!r}, expected a time such as 2026-11-21T03:00:00Z.")
    return int(moment.timestamp() * 1000)


def _print(link: Link, found: Sequence[Source], options: LogOptions) -> None:
    """Print the output of one container after another, or of all concurrently if `options.follow` is set."""
    outputs = [partial(_output, link, one.pod, one.part, options) for one in found]
    if options.follow and len(outputs) > 1:
        for error in output.write_together(outputs):
            _fail(error, options)
        return
    for source in outputs:
        try:
            output.write(source())
        except (Failure, Refusal) as error:
            _fail(error, options)


def _fail(error: Exception, options: LogOptions) -> None:
    if not (options.ignore_errors and isinstance(error, Failure | Refusal)):
        raise error
    click.echo(worded(str(error)), err=True)


def _output(link: Link, pod: str, part: Part, options: LogOptions) -> Iterator[bytes]:
    container_id = run_of(part, pod, previous=options.previous)
    try:
        pieces = (
            piece
            for _, piece in link.runtime.logs(
                container_id,
                follow=options.follow and not options.previous,
                tail=options.tail,
                since=options.since,
                timestamps=options.timestamps,
            )
        )
        limit = output.limited(pieces, options.limit_bytes) if options.limit_bytes else pieces
        yield from output.prefixed(limit, f"[pod/{pod}/{part.name}] ".encode()) if options.prefix else limit
    except Refusal as refusal:
        if refusal.kind != "not_found":
            raise
        raise link.engine.missing(link.runtime, container_id, pod, "along with its output") from refusal
