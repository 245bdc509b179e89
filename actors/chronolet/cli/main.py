"""The `chronolet` command: finds the subcommand, imports only its module and prints failures.

Input: the command line. Output: an exit status (0 success, 1 failure, 2 usage error, 130 interrupted) and, for an
expected failure, lines that begin with `error: ` or have kubectl's wording. Next: one module per subcommand in this
package, each with a `command`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from chronolet.cli.errors import Failure, worded
from chronolet.cli.options import global_options

if TYPE_CHECKING:  # `--help` needs none of them
    from chronolet.cli.services import Services


class Listed(NamedTuple):
    """A subcommand's module, relative to `chronolet.cli`, and the beginning of its help text."""

    module: str
    help: str


COMMANDS = {
    "run": Listed("run", "Run the node agent."),
    "apply": Listed("apply.command", "Apply manifests: create or change pods and Secrets."),
    "delete": Listed("apply.delete", "Delete pods and Secrets."),
    "get": Listed("get.command", "List pods, containers, events and other objects."),
    "describe": Listed("describe.command", "Show details of pods, devices or the node."),
    "logs": Listed("containers.logs", "Print a container's output."),
    "events": Listed("history.events", "List events about pods and the node."),
    "exec": Listed("containers.exec", "Run a command in a container."),
    "log": Listed("history.log", "Print the node's event log."),
    "diff": Listed("history.diff", "Show what changed between two moments."),
    "replay": Listed("replay.command", "Show the state at a moment of the past, or what happened step by step."),
    "history": Listed(
        "over_time.command",
        "Show who had which device when, who used which image, the load of the node, or the outcomes of probes.",
    ),
    "timeline": Listed("timeline.command", "Draw the containers, probes and restarts of some time on one screen."),
    "why": Listed(
        "history.why", "Explain why a container restarted, or why a pod is not ready, rejected, deleted, ..."
    ),
    "trace": Listed("history.trace", "Show how long each part of a pod's last start took."),
    "wait": Listed("watch.wait", "Wait for a condition on pods, such as ready or deleted."),
    "bundle": Listed(
        "bundle.command", "Save a window of the node's log in one file without secrets, and read such files anywhere."
    ),
    "gc": Listed("gc.command", "Collect dead containers and unused images."),
    "archive": Listed("archive.command", "Verify, repair or index the archived part of the node's log."),
    "node": Listed(
        "site.command", "Move the node to this machine and Docker Engine, in place of those that were replaced."
    ),
    "drain": Listed("processes.drain", "Hand over all shards of a process to the other processes of the node."),
    "undrain": Listed("processes.undrain", "Let a drained process take its share of the shards again."),
    "checkpoint": Listed(
        "history.checkpoint",
        "Print device allocations in the kubelet's checkpoint format (kubelet_internal_checkpoint).",
    ),
    "shards": Listed(
        "shards", "Show the shard counts of the node's log, or change them: `chronolet shards pod=8 prober=8`."
    ),
    "check": Listed("check", "Check Docker, Redis, permissions, cgroups and disk space."),
    "completion": Listed("completion.command", "Print the completion script for a shell."),
}
"""The subcommands in the order of `--help`, which prints these help texts because loading all modules is too slow."""


def _expected_status(error: Exception) -> int | None:
    """Return the exit status for an expected failure, whose text is meant for the user; None for a bug.

    The lower layers' exceptions are imported only after a failure.
    """
    if isinstance(error, click.ClickException):
        return error.exit_code
    if isinstance(error, Failure):
        return error.status
    from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable  # noqa: PLC0415
    from chronolet.node.settings.values import SettingsError  # noqa: PLC0415
    from chronolet.ports.runtime.runtime import Refusal  # noqa: PLC0415

    if isinstance(error, SettingsError):
        return 2
    return 1 if isinstance(error, StoreUnreachable | StoreBroken | Refusal) else None


class ReaderGone(Exception):  # noqa: N818 - not an error: `chronolet log | head` stops reading
    """Raised when the reader of standard output or standard error has closed the pipe."""


@contextmanager
def _reader_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class LazyGroup(click.Group):
    """A command group that imports a subcommand's module on first use."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Like click's method, but raises ReaderGone on a closed pipe, for which click would exit with status 1."""
        with _reader_gone():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Like click's method, but raises ReaderGone on a closed pipe."""
        with _reader_gone():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"chronolet.cli.{COMMANDS[cmd_name].module}").command
        assert isinstance(command, click.Command)  # noqa: S101 - each subcommand module defines `command`
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Like click's method, but does not import the subcommands."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, short_help(COMMANDS[name].help, limit)) for name in names])


def short_help(text: str, limit: int) -> str:
    """Shorten a help text to this length, as click does."""
    return click.Command(None, help=text).get_short_help_str(limit)


def _version(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        from chronolet.cli.version import installed_version  # noqa: PLC0415 - other commands do not need it

        click.echo(f"chronolet {installed_version()}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="show the version and exit"
)
@global_options
def cli() -> None:
    """Run Kubernetes Pods on a plain Docker host, with a complete event log."""


def main(arguments: Sequence[str] | None = None, services: Services | None = None) -> None:
    """Run one command line and exit. `services`: None for the real ones; tests pass fakes."""
    sys.exit(status_of(sys.argv[1:] if arguments is None else arguments, services))


def status_of(arguments: Sequence[str], services: Services | None) -> int:
    """Run one command line and return its exit status. Print expected failures; any other exception is a bug."""
    try:
        result = cli.main(args=list(arguments), prog_name="chronolet", standalone_mode=False, obj=services)
        sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        # Prevents an error when Python flushes the closed pipe at exit.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return 0
    except (KeyboardInterrupt, click.Abort):
        return 130
    except Exception as error:
        status = _expected_status(error)
        if status is None:
            raise
        _complain(error)
        return status
    return result if isinstance(result, int) else 0


def _complain(error: Exception) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return
    for line in _lines(error):
        click.echo(worded(line), err=True)


def _lines(error: Exception) -> Sequence[str]:
    if isinstance(error, Failure):
        return error.lines
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "chronolet"
        return (f"{error.format_message()} See `{where} --help`.",)
    return (error.format_message() if isinstance(error, click.ClickException) else str(error),)
