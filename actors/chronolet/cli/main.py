"""The `chronolet` command: finds the subcommand, imports only its module and prints failures.

Input: the command line. Output: an exit status (0 success, 1 failure, 2 usage error) and, for an expected failure,
lines that begin with `error: `. Next: one module per subcommand in this package, each with a `command`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from chronolet.cli.errors import Failure, worded
from chronolet.cli.options import global_options
from chronolet.cli.services import Services
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.node.settings.values import SettingsError
from chronolet.ports.runtime.runtime import Refusal

COMMANDS = {
    "run": "run",
    "apply": "apply.command",
    "delete": "apply.delete",
    "get": "get.command",
    "describe": "describe.command",
    "logs": "containers.logs",
    "events": "history.events",
    "exec": "containers.exec",
    "log": "history.log",
    "trace": "history.trace",
    "wait": "watch.wait",
    "gc": "gc.command",
    "checkpoint": "history.checkpoint",
    "check": "check",
    "completion": "completion.completion",
}
"""Module of each subcommand, relative to `chronolet.cli`, in the order in which `--help` lists them."""


EXPECTED_STATUS: dict[type[Exception], int] = {SettingsError: 2, StoreUnreachable: 1, StoreBroken: 1, Refusal: 1}
"""Exit status of each lower-layer exception whose text can be shown to the user as one line."""

_EXPECTED: tuple[type[Exception], ...] = (click.ClickException, Failure, *EXPECTED_STATUS)


class ReaderGone(Exception):  # noqa: N818 - not an error: `chronolet log | head` stops reading
    """The reader of standard output or standard error has closed the pipe."""


@contextmanager
def _reader_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class LazyGroup(click.Group):
    """Command group that imports a subcommand's module on first use."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Like click's, but raises `ReaderGone` on a closed pipe, for which click would exit with status 1."""
        with _reader_gone():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Like click's, but raises `ReaderGone` on a closed pipe."""
        with _reader_gone():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"chronolet.cli.{COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)  # noqa: S101 - each subcommand module defines `command`
        return command


def _version(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        from importlib import metadata  # noqa: PLC0415 - slow to load

        try:
            version = metadata.version("chronolet")
        except metadata.PackageNotFoundError:
            version = "(running from a source tree that is not installed)"
        click.echo(f"chronolet {version}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="show the version and exit"
)
@global_options
def cli() -> None:
    """Run Kubernetes Pods on a plain Docker host, with a complete event log."""


def main(arguments: Sequence[str] | None = None, services: Services | None = None) -> None:
    """Run one command line and exit. Tests pass their own `services`."""
    sys.exit(status_of(sys.argv[1:] if arguments is None else arguments, services or Services()))


def status_of(arguments: Sequence[str], services: Services) -> int:
    """Run one command line and return its exit status. Prints expected failures; anything else is a bug and raises."""
    try:
        result = cli.main(args=list(arguments), prog_name="chronolet", standalone_mode=False, obj=services)
        sys.stdout.flush()
    except _EXPECTED as error:
        return _complain(error)
    except (ReaderGone, BrokenPipeError):
        # Keeps Python from failing on its final flush of the closed pipe.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return 0
    except (KeyboardInterrupt, click.Abort):
        return 130
    return result if isinstance(result, int) else 0


def _complain(error: Exception) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return error.exit_code
    for line in _lines(error):
        click.echo(worded(line), err=True)
    if isinstance(error, click.ClickException):
        return error.exit_code
    return error.status if isinstance(error, Failure) else EXPECTED_STATUS.get(type(error), 1)


def _lines(error: Exception) -> Sequence[str]:
    if isinstance(error, Failure):
        return error.lines
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "chronolet"
        return (f"{error.format_message()} See `{where} --help`.",)
    return (error.format_message() if isinstance(error, click.ClickException) else str(error),)
