"""`chronolet history`: shows devices, images, the node or the outcomes of probes over time.

Input: a subject, names, two moments. Output: tables, or one JSON object. Next: the module of the subject, whose
function `find` returns both.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from chronolet.cli.errors import Failure, not_found
from chronolet.cli.naming import asked_types
from chronolet.cli.options import Command, with_settings
from chronolet.cli.printing import table

if TYPE_CHECKING:  # `--help` needs none of them
    from chronolet.cli.over_time.found import Found
    from chronolet.node.settings.settings import Settings

SUBJECTS = {"devices": "devices", "images": "images", "nodes": "node", "probes": "probes"}
"""The module of each type of objects."""


def subjects(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the shell completions for the subject."""
    return [name for name in ("devices", "images", "node", "probes") if name.startswith(incomplete)]


@click.command(cls=Command)
@with_settings()
@click.option("--from", "begin", metavar="MOMENT", help="the beginning, as for --at [default: an hour before --to]")
@click.option("--to", "end", metavar="MOMENT", help="the end [default: now]")
@click.option("--no-headers", is_flag=True, help="do not print headers")
@click.option("-o", "--output", type=click.Choice(["json"]), help="output format: one JSON object")
@click.option("-n", "--namespace", metavar="NAME", help="of probes: the namespace of the pods [default: default]")
@click.option("-c", "--container", metavar="NAME", help="of probes: only this container's")
@click.argument(
    "words", nargs=-1, required=True, metavar="(devices|images|node|probes) [NAME...]", shell_complete=subjects
)
def command(
    *,
    settings: Settings,
    begin: str | None,
    end: str | None,
    no_headers: bool,
    output: str | None,
    namespace: str | None,
    container: str | None,
    words: Sequence[str],
) -> None:
    """Show who had which device when, who used which image, the load of the node, or the outcomes of probes."""
    asked = asked_types(words, tuple(SUBJECTS))
    if len(asked) > 1:
        raise click.UsageError(f"found {' '.join(words)!r}, expected one of devices, images, node and probes.")
    [(type_, names)] = asked
    scope = {"namespace": namespace, "container": container}
    if type_ != "probes" and any(scope.values()):
        raise click.UsageError("-n and -c select probes: expected `history probes`.")
    from chronolet.cli.ranges import between  # noqa: PLC0415 - `--help` needs none of them
    from chronolet.cli.session import session  # noqa: PLC0415

    with session(settings) as node:
        first, last = between(node, begin, end)
        module = importlib.import_module(f"chronolet.cli.over_time.{SUBJECTS[type_]}")
        found: Found = module.find(node, first, last, names, **(scope if type_ == "probes" else {}))
    if output:
        click.echo(json.dumps({"from": first.milliseconds, "to": last.milliseconds, **found.plain}))
    else:
        _show(found, type_, headers=not no_headers)
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if found.missing:
        raise Failure(*(not_found(type_, name) for name in found.missing))


def _show(found: Found, type_: str, *, headers: bool) -> None:
    """Print the tables that have rows, with empty lines in between."""
    shown = [one for one in found.tables if one.rows]
    for number, one in enumerate(shown):
        if number:
            click.echo()
        table.show(one.head, one.rows, headers=headers)
    if not shown and not found.missing:
        click.echo(f"No {type_} in that time.", err=True)
