"""`chronolet replay`: prints the node's state at a moment of the past, or what happened step by step.

Input: moments, what to show. Output: tables, lines or JSON. Next: one module per mode: `state` for `--at`, `stepping`
for `--step`, `whatif` for `--set` and `--manifest`, `verifying` for `--verify`, `cli.history.page` for `--html`, this
one for all steps in a row.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chronolet.cli.completion.candidates import pods
from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.history.when import Located

if TYPE_CHECKING:  # `--help` needs none of them
    from chronolet.cli.replay.frames import Frame
    from chronolet.cli.replay.steps import Step
    from chronolet.cli.replay.wanted import Wanted
    from chronolet.cli.session import Session
    from chronolet.node.settings.settings import Settings

_BLOCK_MILLISECONDS = 5_000
"""The longest time that one read waits for new entries; it returns as soon as there is one."""

SLOWEST, FASTEST = 0.001, 1_000_000.0
"""The bounds of `--speed`: a pause must not be longer than a machine can sleep."""


def _number(_ctx: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    """Refuse `nan`, which is within any range for click."""
    if value is not None and math.isnan(value):
        raise click.BadParameter(f"found nan, expected a number from {SLOWEST} to {FASTEST:.0f}.")
    return value


def _subjects(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the shell completions for `--only`."""
    if "/" in incomplete:
        return pods(context, parameter, incomplete)
    return [name for name in ("devices", "images", "nodes", "pod/", "pods") if name.startswith(incomplete)]


def _changes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the shell completions for `--set`."""
    from chronolet.node.whatif.wanted import CHANGEABLE  # noqa: PLC0415 - only this option needs it

    return [name for name in ("pod/", *(f"{one}=" for one in CHANGEABLE)) if name.startswith(incomplete)]


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.option("--at", metavar="MOMENT", help="print the state at this moment: -15m, 03:00, 2026-11-21T03:00:00Z, #1234")
@click.option("--from", "begin", metavar="MOMENT", help="begin after this moment [default: the beginning of the log]")
@click.option("--to", "end", metavar="MOMENT", help="end at this moment [default: now]")
@click.option("-f", "--follow", "following", is_flag=True, help="after the recorded steps, print new ones")
@click.option(
    "--speed",
    type=click.FloatRange(min=SLOWEST, max=FASTEST),
    callback=_number,
    metavar="N",
    help="pause between steps as long as it took then, N times as fast",
)
@click.option(
    "--only",
    multiple=True,
    metavar="TYPE[/NAME]",
    shell_complete=_subjects,
    help="only what is about pod/NAME, or about pods, devices, images or nodes; may be repeated",
)
@click.option("--step", "stepping", is_flag=True, help="go through the steps by keys, in a terminal")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=_changes,
    help="show what would have happened with another setting, or with another threshold of a probe "
    "(pod/NAME/CONTAINER.livenessProbe.failureThreshold=5); may be repeated",
)
@click.option(
    "--manifest",
    "manifests",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="show what would have happened with another manifest of a pod; may be repeated",
)
@click.option("--verify", "verifying", is_flag=True, help="decide everything again, and compare with the log")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="write all of it as one page for a browser, which needs no network",
)
@click.option("-o", "--output", type=click.Choice(["json"]), help="output format: one JSON object per step")
def command(
    *,
    settings: Settings,
    namespace: str,
    at: str | None,
    begin: str | None,
    end: str | None,
    following: bool,
    speed: float | None,
    only: Sequence[str],
    stepping: bool,
    changes: Sequence[str],
    manifests: Sequence[Path],
    verifying: bool,
    html: Path | None,
    output: str | None,
) -> None:
    """Show the state at a moment of the past, or what happened step by step."""
    _check(
        {"--at": at, "--from": begin, "--to": end, "--follow": following, "--speed": speed, "--step": stepping}
        | {"--verify": verifying, "--html": html, "--only": only or None}
        | {"--set": changes or None, "--manifest": manifests or None},
        output=output,
    )
    from chronolet.cli.replay.wanted import wanted  # noqa: PLC0415 - `--help` needs none of them
    from chronolet.cli.session import session  # noqa: PLC0415

    chosen = wanted(only, namespace)
    with session(settings, at=at) as node:
        if at is not None:
            from chronolet.cli.replay import state  # noqa: PLC0415 - one module per mode

            state.show(node, chosen, namespace, output)
            return
        last = node.go_to_now() if end is None else node.go_to(end, "--to")
        first = Located(node.beginning(), 0) if begin is None else node.go_to(begin, "--from")
        if last.position < first.position:
            raise Failure(f"--from: found {begin}, expected a moment before --to")
        if changes or manifests:
            from chronolet.cli.replay.whatif.asking import ask  # noqa: PLC0415 - one module per mode

            ask(node, first, last, changes=changes, files=manifests, namespace=namespace, output=output)
            return
        if verifying:
            from chronolet.cli.replay.verifying import verify  # noqa: PLC0415 - one module per mode

            verify(node, first, last, output, whole=end is None)
            return
        if html is not None:
            from chronolet.cli.history.page.writing import write_page  # noqa: PLC0415 - one module per mode

            written = write_page(node, html, first, last)
            click.echo(f"{html}: {written.entries} events, {written.bytes / 1_000_000:.1f} MB")
            return
        if stepping:
            from chronolet.cli.replay.stepping import run  # noqa: PLC0415 - one module per mode

            run(node, chosen, first, last)
            return
        _show(node, chosen, first, last, following=following, speed=speed, output=output)


def _check(given: dict[str, object], *, output: str | None) -> None:
    """Refuse options that exclude each other, and `--step` without a terminal."""
    flags = [name for name, value in given.items() if value not in (None, False)]
    excluded = {
        "--at": [one for one in flags if one not in ("--at", "--only")],
        "--html": ["--follow", "--speed", "--only", "--step", "--verify"],
        "--set": ["--follow", "--speed", "--only", "--step", "--verify", "--html"],
        "--manifest": ["--follow", "--speed", "--only", "--step", "--verify", "--html"],
        "--follow": ["--to"],
        "--step": ["--follow", "--speed"],
        "--verify": ["--follow", "--speed", "--step", "--only"],
    }
    for flag, others in excluded.items():
        if flag in flags and (other := next((one for one in others if one in flags), None)):
            raise click.UsageError(f"found {flag} with {other}, expected one of them.")
    for flag in ("--step", "--html"):
        if flag in flags and output:
            raise click.UsageError(f"found {flag} with --output, expected one of them.")
    if "--step" in flags and not sys.stdin.isatty():
        raise Failure("--step: found a standard input that is no terminal, expected one, whose keys choose the steps")


def _show(
    node: Session,
    chosen: Wanted,
    first: Located,
    last: Located,
    *,
    following: bool,
    speed: float | None,
    output: str | None,
) -> None:
    """Print the steps between the two moments, then, if `following`, those after them, endlessly."""
    from chronolet.cli.replay import frames, printing  # noqa: PLC0415 - `--help` needs none of them
    from chronolet.cli.replay.steps import Pace, steps  # noqa: PLC0415

    node.at = last
    recorded = steps(node.entries(first.position))
    node.at = first
    found = frames.frames(node, chosen, itertools.chain(recorded, _new(node, last)) if following else recorded)
    node.at = None
    pace = Pace(speed) if speed else None
    write: Callable[[Frame], Iterator[str]] = printing.as_json if output else printing.as_text
    shown = False
    for frame in found:
        # New steps come at their own pace.
        if pace is not None and frame.step.position <= last.position:
            node.services.sleep(pace.seconds_before(frame.step))
        for line in write(frame):
            click.echo(line)
        shown = True
    if not shown:
        click.echo("No steps.", err=True)


def _new(node: Session, last: Located) -> Iterator[Step]:
    """Yield the steps after the recorded ones, endlessly. A step is committed at once, so it arrives as a whole.

    The store is only waited for: what was trimmed while earlier steps were printed must be read from the archive.
    """
    from chronolet.cli.replay.steps import steps  # noqa: PLC0415 - see above

    after = last.position
    while True:
        for step in steps(node.entries(after)):
            after = step.position
            yield step
        node.store.wait(after, {}, 1, _BLOCK_MILLISECONDS)
