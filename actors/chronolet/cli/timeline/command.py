"""`chronolet timeline`: draws the containers, probes and restarts of some time on one screen.

Input: pods, two moments. Output: a line of text per container, or JSON. Next: `spans` records, `chart` draws.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from chronolet.cli.completion.candidates import pods
from chronolet.cli.errors import Failure, not_found
from chronolet.cli.naming import pod_name
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing import ages, axis
from chronolet_schemas.times import time_of

if TYPE_CHECKING:  # `--help` needs none of them
    from chronolet.cli.session import Session
    from chronolet.cli.timeline.chart import Style
    from chronolet.cli.timeline.spans import Row, What
    from chronolet.history.when import Located
    from chronolet.node.settings.settings import Settings

_COLUMNS = 80
"""The width if there is no terminal."""
_OUTCOMES: Mapping[str, What] = {
    "prober.ProbeFailed": "probe_failed",
    "prober.ProbeErrored": "probe_unjudged",
    "prober.ProbeUnjudged": "probe_unjudged",
}
"""The outcomes of probes that are marked, by the type of their event without its version."""


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.option("--from", "begin", metavar="MOMENT", help="the beginning, as for --at [default: an hour before --to]")
@click.option("--to", "end", metavar="MOMENT", help="the end [default: now]")
@click.option("-A", "--all-namespaces", is_flag=True, help="show pods across all namespaces")
@click.option("-o", "--output", type=click.Choice(["json"]), help="output format: one JSON object")
@click.argument("words", nargs=-1, metavar="[POD...]", shell_complete=pods)
def command(
    *,
    settings: Settings,
    namespace: str,
    begin: str | None,
    end: str | None,
    all_namespaces: bool,
    output: str | None,
    words: Sequence[str],
) -> None:
    """Draw the containers, probes and restarts of some time on one screen."""
    names = [pod_name(word) for word in words]
    if names and all_namespaces:
        raise click.UsageError("a resource cannot be retrieved by name across all namespaces.")
    from chronolet.cli.ranges import between  # noqa: PLC0415 - `--help` needs none of them
    from chronolet.cli.session import session  # noqa: PLC0415

    with session(settings) as node:
        first, last = between(node, begin, end)
        wanted = [f"{namespace}/{name}" for name in names]
        rows = _rows(node, first, last, wanted, None if all_namespaces else namespace)
    missing = [pod for pod in wanted if not any(one.pod == pod for one in rows)]
    if output:
        click.echo(json.dumps(_plain(rows, first.milliseconds, last.milliseconds)))
    elif rows:
        _draw(rows, first.milliseconds, last.milliseconds)
    elif not missing:
        click.echo(f"No containers found{'' if all_namespaces else f' in {namespace} namespace'}.", err=True)
    if missing:
        raise Failure(*(not_found("pods", pod.partition("/")[2]) for pod in missing))


def _rows(node: Session, first: Located, last: Located, wanted: Sequence[str], namespace: str | None) -> Sequence[Row]:
    """Read the pods between two moments: those that are wanted or, if none are, those of the namespace (None: all)."""
    from chronolet.cli.timeline.spans import Recorder  # noqa: PLC0415 - `--help` needs none of them

    def in_scope(pod: str) -> bool:
        return pod in wanted if wanted else namespace is None or pod.partition("/")[0] == namespace

    folding = node.folding("pod", pods=wanted)
    states = folding.states["pod"]
    recorder = Recorder({key: state for key, state in states.items() if in_scope(key)}, first.milliseconds)
    node.at = last
    for entry in node.entries(first.position):
        kind, _, key = entry.entity.partition("/")
        if kind == "pod" and in_scope(key):
            folding.read((entry,))
            recorder.changed(key, states.get(key), time_of(entry))
        elif kind == "prober" and (what := _OUTCOMES.get(entry.type.partition("@")[0])):
            recorder.probed(key, what, time_of(entry))
    node.unreadable.update(folding.unreadable)
    return recorder.rows(last.milliseconds)


def _draw(rows: Sequence[Row], begin: int, end: int) -> None:
    from chronolet.cli.timeline.chart import chart  # noqa: PLC0415 - `-o json` draws nothing

    click.echo(f"{ages.local(begin)} to {ages.local(end)}")
    for line in chart(rows, begin, end, shutil.get_terminal_size((_COLUMNS, 0)).columns, style(begin)):
        click.echo(line)


def style(begin: int) -> Style:
    """Return what standard output can show: characters other than ASCII if its encoding is UTF-8, colours if it is a
    terminal and NO_COLOR is not set. `begin`: the time for which the time zone's offset is taken.
    """
    from chronolet.cli.timeline.chart import Style  # noqa: PLC0415 - `-o json` draws nothing

    ascii_only = codecs.lookup(sys.stdout.encoding or "ascii").name != "utf-8"
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    paint = _coloured if coloured else lambda text, _: text
    return Style(ascii_only, paint, axis.label, axis.utc_offset(begin))


def _coloured(text: str, colour: str) -> str:
    return click.style(text, fg=colour)


def _plain(rows: Sequence[Row], begin: int, end: int) -> dict[str, Any]:
    """Return the rows as plain data. Times are milliseconds since the epoch, as in the events of `log -o json`."""
    return {"from": begin, "to": end, "containers": [_plain_row(one) for one in rows]}


def _plain_row(row: Row) -> dict[str, Any]:
    namespace, _, pod = row.pod.partition("/")
    return {
        "namespace": namespace,
        "pod": pod,
        "container": row.container,
        "type": row.kind,
        "restarts": row.restarts,
        "spans": [{"condition": one.condition, "from": one.begin, "to": one.end} for one in row.spans],
        "marks": [{"what": one.what, "at": one.at, "detail": one.detail} for one in row.marks],
    }
