"""`chronolet trace`: shows how long each part of a pod's last start took.

Input: a pod. Output: one sentence that names the main delay, then a line for each step, wait and call. The steps
come from the log; the durations of engine calls come from the running agent, which retains its most recent spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import click
import msgspec

from chronolet.cli.completion import candidates
from chronolet.cli.describe.probe_section import MOST_LOOKED_AT
from chronolet.cli.naming import pod_name
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import Session, session
from chronolet.history.start_culprit import share
from chronolet.history.start_steps import Step, concerns_start
from chronolet.history.start_trace import Trace, trace
from chronolet.node.settings.settings import Settings
from chronolet.ports.spans import Span
from chronolet_schemas import codec
from chronolet_schemas.envelope import Event
from chronolet_schemas.times import Stamp, stamp_of

MOST_SHOWN = 60
"""The maximum number of steps to print: a pod that waits for its image may have thousands."""


@click.command(cls=Command)
@with_settings()
@click.argument("name", metavar="POD", shell_complete=candidates.pods)
@namespace_option
@click.option("-o", "--output", type=click.Choice(["json"]), help="output format: one JSON object")
def command(*, settings: Settings, name: str, namespace: str, output: str | None) -> None:
    """Show how long each part of a pod's last start took."""
    pod = f"{namespace}/{pod_name(name)}"
    with session(settings) as node:
        agents = node.store.alive()
        replies = {info: node.services.spans(info, pod) for info in agents.values()}
        spans = [span for some in replies.values() for span in some or ()]
        results = islice(node.services.results(settings), MOST_LOOKED_AT)
        with progress("reading the node's log"):
            found = trace(pod, _events(node, pod), spans, results, node.now(), hosted=_hosted(replies))
        if found is None:
            raise node.lacks(pod, f"the start of {pod}")
        _show(found, output, node.now())
        for line in _notes(found, replies, node.now()):
            click.echo(f"note: {line}", err=True)


def _events(node: Session, pod: str) -> Iterator[tuple[Stamp, str, Event]]:
    for entry in node.entries():
        if not concerns_start(entry, pod):
            continue
        try:
            yield stamp_of(entry), entry.entity, codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            if entry.entity == f"pod/{pod}":
                node.unreadable.add(entry.position)


def _hosted(agents: Mapping[str, object]) -> bool:
    """Return whether one of these processes hosts pods. The keys of `agents` are entries from the list of live
    processes.
    """
    return any("pod" in info.partition(" ")[0].split(",") for info in agents)


def _show(found: Trace, output: str | None, now: int) -> None:
    if output:
        click.echo(msgspec.json.encode(found).decode())
        return
    click.echo(found.culprit)
    for line in _lines(found, now):
        click.echo(line)


def _notes(found: Trace, replies: Mapping[str, Sequence[Span] | None], now: int) -> Iterator[str]:
    """Yield notes on what the trace lacks, and why."""
    if found.gone_at:
        yield f"{found.pod} was removed {(now - found.gone_at) / 1000:.3f} s ago: this is its last start"
    without = "steps come from the log, without individual engine calls"
    if not replies:
        yield f"no agent of the node is running: {without}"
    for info, some in replies.items():
        address = info.partition(" ")[2]
        if some is None and address:
            yield f"the agent at http://{address}/trace did not return spans: {without}"
        elif some is None:
            yield f"an agent of the node has its HTTP server disabled (--port 0): {without}"
    known = [some for some in replies.values() if some is not None]
    if known and not any(some for some in known) and found.steps:
        yield f"the agent has no engine calls of this start, which predates the agent or is too old: {without}"


def _lines(found: Trace, now: int) -> Iterator[str]:
    whole = max(found.milliseconds, 1)
    left_out = max(len(found.steps) - MOST_SHOWN, 0)
    if left_out:
        yield f"  ... {left_out} earlier steps; `-o json` prints all"
    for step in found.steps[left_out:]:
        took = step.milliseconds(now)
        note = f"  ({step.note})" if step.note else ""
        what = step.name if step.ended else f"{step.name}, in progress"
        yield f"  +{_seconds(step.began - found.began)}  {_seconds(took)}  {share(took, whole):>5}  {what}{note}"
        yield from _calls(step, found.began, whole, now)


def _calls(step: Step, began: int, whole: int, now: int) -> Iterator[str]:
    for span in step.spans:
        at, took = span.at - began, span.took(now)
        what = span.what if span.over else f"{span.what}, in progress"
        yield f"  +{_seconds(at)}  {_seconds(took)}  {share(took, whole):>5}    {what}"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:8.3f} s"
