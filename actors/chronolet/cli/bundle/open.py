"""`chronolet bundle open`: runs a reading command on a bundle, on any machine, without Docker or Redis.

Input: a file, decrypted if needed, and a command line. Output: what the command prints; without a command, what the
bundle has. Next: `cli.main`, with the services of `services`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import click

from chronolet.cli.bundle import summary
from chronolet.cli.bundle.encryption import decrypted
from chronolet.cli.bundle.services import KINDS, check_states, services
from chronolet.cli.errors import Failure
from chronolet.cli.main import COMMANDS, LazyGroup, cli
from chronolet.cli.services import readable_kinds
from chronolet.history.bundle.parts import Unreadable
from chronolet.history.bundle.reader import Bundle, opened
from chronolet.history.bundle.store import EndOfBundle

LIVE = frozenset(
    {
        "apply",
        "archive",
        "bundle",
        "check",
        "completion",
        "delete",
        "drain",
        "exec",
        "gc",
        "node",
        "run",
        "shards",
        "undrain",
        "wait",
    }
)
"""Commands that need a live node. Of all others, a bundle answers what its log can tell."""


def _commands(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the first word to a command that reads the log."""
    given = ctx.params.get("command_line")
    return [] if given else [name for name in COMMANDS if name not in LIVE and name.startswith(incomplete)]


identity_option = click.option(
    "--identity",
    "identities",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="file with an age key, for a bundle encrypted with age; can be repeated",
)


@click.command("open", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@identity_option
@click.option("--check", is_flag=True, help="read the whole file first, and fail if any part is damaged")
@click.option("-o", "--output", type=click.Choice(["json"]), help="without COMMAND: one JSON object")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("command_line", nargs=-1, metavar="[COMMAND...]", type=click.UNPROCESSED, shell_complete=_commands)
def command(
    *,
    identities: tuple[Path, ...],
    check: bool,
    output: str | None,
    file: Path,
    command_line: tuple[str, ...],
) -> Any:
    """Run COMMAND on the bundle FILE: get, describe, events, log, diff, why and other commands that read the log.

    The bundle's end is the present: --at -5m is five minutes before it. Without COMMAND, show what the bundle has.
    """
    with reading(file, identities) as bundle:
        if check:
            bundle.check()
            for kind in readable_kinds(KINDS):
                check_states(bundle, kind)
        if not command_line:
            lines = (summary.as_json(bundle.manifest),) if output else summary.as_lines(bundle.manifest)
            for line in lines:
                click.echo(line)
            return None
        return _run(bundle, command_line)


class _Reading(LazyGroup):
    """The commands that read the log."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in super().list_commands(ctx) if name not in LIVE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LIVE:
            raise Failure(f"{ctx.info_name}: {cmd_name} needs a live node, expected a command that reads the log")
        return super().get_command(ctx, cmd_name)


def _run(bundle: Bundle, words: tuple[str, ...]) -> Any:
    group = _Reading(cli.name, callback=cli.callback, params=cli.params, context_settings=cli.context_settings)
    node = ("--hostname-override", bundle.manifest.node)
    with suppress(EndOfBundle):
        name = f"chronolet bundle open {bundle.name}"
        return group.main([*node, *words], prog_name=name, standalone_mode=False, obj=services(bundle))


@contextmanager
def reading(file: Path, identities: tuple[Path, ...] = ()) -> Iterator[Bundle]:
    """Open a bundle for the duration of the block. Raises Failure, also for damage that shows within the block."""
    try:
        with decrypted(file, identities) as content:
            bundle = opened(file) if content is None else Bundle(cast(Any, content), str(file))
            try:
                yield bundle
            finally:
                bundle.close()
    except Unreadable as error:
        raise Failure(str(error)) from error
    except RecursionError as error:
        raise Failure(f"{file}: an entry or a state in it is nested too deeply, expected at most 100 levels") from error
