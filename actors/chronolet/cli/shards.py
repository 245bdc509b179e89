"""`chronolet shards`: shows the number of shards of each kind, or requests other numbers.

Input: pairs such as `pod=8`. Output: a table, or one line for each change; exit status 1 if a change was refused. The
node's processes make the change: `kernel.layout.changes`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import click

from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, with_settings
from chronolet.cli.printing import table
from chronolet.cli.session import Session, session
from chronolet.kernel.storage.layout import Layout
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.shard_counts import shard_count

_PAUSE_SECONDS = 0.1


@click.command("shards", cls=Command)
@click.argument("wanted", nargs=-1, metavar="[KIND=NUMBER]...")
@click.option("--wait", type=bool, default=True, metavar="BOOL", help="false: do not wait until the change is made")
@with_settings()
def command(*, settings: Settings, wanted: Sequence[str], wait: bool) -> None:
    """Show the shard counts of the node's log, or change them: `chronolet shards pod=8 prober=8`.

    Running pods are not touched. Processes of earlier releases cannot host a kind whose count was changed.
    """
    counts = _parsed(wanted)
    with session(settings) as node:
        if not counts:
            _show(node.store.layout())
            return
        before = node.store.layout()
        for kind, count in counts.items():
            if not node.store.request_shards(kind, count):
                raise Failure(f"the log of node {settings.node} has no kind {kind}: nothing to change")
        _report(node, before, counts, wait=wait)


def _parsed(wanted: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pair in wanted:
        kind, mark, count = pair.partition("=")
        if not mark:
            raise click.UsageError(f"found {pair!r}, expected KIND=NUMBER such as pod=8.")
        found[kind] = shard_count("shards", kind, count)
    return found


def _show(layout: Layout) -> None:
    rows = [
        [kind, str(count), str(layout.requested.get(kind, "<none>")), layout.refused.get(kind, "<none>")]
        for kind, count in sorted(layout.counts.items())
    ]
    table.show(("KIND", "SHARDS", "REQUESTED", "LAST REFUSAL"), rows)


def _report(node: Session, before: Layout, counts: Mapping[str, int], *, wait: bool) -> None:
    refused: list[str] = []
    for kind, count in counts.items():
        former = before.counts[kind]
        if former == count:
            click.echo(f"{kind}: has {count} shards already")
        elif not wait or not _is_hosted(node, kind):
            hint = "" if _is_hosted(node, kind) else "; no running process hosts this kind: the next one changes it"
            click.echo(f"{kind}: change from {former} to {count} shards requested{hint}")
        elif reason := _awaited(node, kind, count):
            refused.append(f"{kind}: not changed from {former} to {count} shards: {reason}")
        else:
            click.echo(f"{kind}: changed from {former} to {count} shards")
    if refused:
        raise Failure(*refused)


def _awaited(node: Session, kind: str, count: int) -> str:
    """Wait for the outcome of the request. Return why it was not met; empty if it was."""
    while True:
        layout = node.store.layout()
        if layout.counts.get(kind) == count:
            return ""
        if layout.requested.get(kind) != count:
            return layout.refused.get(kind, "another request took its place")
        if not _is_hosted(node, kind):
            return "no running process hosts this kind any more; the request remains for the next one"
        time.sleep(_PAUSE_SECONDS)


def _is_hosted(node: Session, kind: str) -> bool:
    """Whether a live process can host the kind. One of an older release lists its kinds in the info of its lease."""
    members = node.store.survey(()).members
    return any(
        kind in (members[process].kinds if process in members else info.partition(" ")[0].split(","))
        for process, info in node.store.alive().items()
    )
