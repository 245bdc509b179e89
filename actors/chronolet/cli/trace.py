"""`chronolet trace`: where the time of a pod's last start went.

Comes in: a pod. Goes out: one sentence that names what took longest, then a line for each step, wait and call. The log
has the steps; what single calls to the engine took only the running agent knows, for its newest spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import click
import msgspec

from chronolet.cli import completing
from chronolet.cli.described_probes import MOST_LOOKED_AT
from chronolet.cli.errors import Failure
from chronolet.cli.naming import pod_name
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.session import session
from chronolet.history.entries import concerns_pod
from chronolet.history.start_trace import Step, Trace, share, trace
from chronolet.node.settings import Settings


@click.command(cls=Command)
@with_settings()
@click.argument("name", metavar="POD", shell_complete=completing.pods)
@namespace_option
@click.option("-o", "--output", type=click.Choice(["json"]), help="one JSON object")
def command(*, settings: Settings, name: str, namespace: str, output: str | None) -> None:
    """Show where the time of a pod's last start went."""
    pod = f"{namespace}/{pod_name(name)}"
    with session(settings) as node:
        entries = (entry for entry in node.entries() if concerns_pod(entry, pod))
        spans = [span for info in node.store.alive().values() for span in node.services.spans(info, pod)]
        probes = islice(node.services.results(settings), MOST_LOOKED_AT)
        found = trace(pod, entries, spans, probes, node.now())
        if found is None:
            raise Failure(f'pods "{pod.partition("/")[2]}" not found: the log has no start of {pod}')
        if output:
            click.echo(msgspec.json.encode(found).decode())
            return
        click.echo(found.culprit)
        for line in _lines(found, node.now()):
            click.echo(line)
        if not spans:
            click.echo("note: no running agent could be asked what single calls to the engine took", err=True)


def _lines(found: Trace, now: int) -> Iterator[str]:
    whole = max((found.ended or now) - found.began, 1)
    for step in found.steps:
        took = step.milliseconds(now)
        note = f"  ({step.note})" if step.note else ""
        what = step.name if step.ended else f"{step.name}, not over"
        yield f"  +{_seconds(step.began - found.began)}  {_seconds(took)}  {share(took, whole):>5}  {what}{note}"
        yield from _calls(step, found.began, whole)


def _calls(step: Step, began: int, whole: int) -> Iterator[str]:
    for span in step.spans:
        at, took = span.at - began, span.milliseconds
        yield f"  +{_seconds(at)}  {_seconds(took)}  {share(took, whole):>5}    {span.what}"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:8.3f} s"
