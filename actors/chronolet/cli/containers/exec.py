"""`chronolet exec`: runs a command in a running container.

Input: a pod, a container, a command. Output: the command's output and exit status. The container's id comes from
the node's log, the command's streams from Docker. Next: `terminal`. Source: kubectl's pkg/cmd/exec.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import click

from chronolet.cli import engines
from chronolet.cli.completion import candidates
from chronolet.cli.containers import parts, terminal
from chronolet.cli.errors import Failure
from chronolet.cli.get import pod_rows
from chronolet.cli.get.api_form import api_pod
from chronolet.cli.naming import pod_name
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.session import session
from chronolet.node.settings.settings import Settings
from chronolet.ports.runtime.runtime import Refusal, Runtime

Object = dict[str, Any]

_META = "chronolet.exec"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5
_HELP = """\b
The exit status is the command's; 1 if the command could not be run.
  chronolet exec web -- ls -l /data
  chronolet exec -it web -c app -- sh"""


class _ExecCommand(Command):
    """A click command that leaves everything after `--`, including flags, to the command in the container."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, dash, rest = _split(args)
        ctx.meta[_META] = tuple(rest) if dash else None
        return super().parse_args(ctx, own)


def _split(words: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in words:
        return words, False, []
    at = words.index("--")
    return words[:at], True, words[at + 1 :]


@click.command(cls=_ExecCommand, epilog=_HELP, options_metavar="[OPTIONS]")
@with_settings("docker")
@namespace_option
@click.argument("name", metavar="(POD | pod/POD)", shell_complete=candidates.pods)
@click.argument("extra", nargs=-1, metavar="-- COMMAND [ARGUMENT...]")
@click.option(
    "-c",
    "--container",
    shell_complete=candidates.containers,
    help="container name [default: the pod's default or first container]",
)
@click.option("-i", "--stdin", is_flag=True, help="pass stdin to the container")
@click.option("-t", "--tty", is_flag=True, help="stdin is a TTY; requires -i")
@click.option("-q", "--quiet", is_flag=True, help="only print output from the command")
def command(
    *,
    settings: Settings,
    namespace: str,
    name: str,
    extra: Sequence[str],
    container: str | None,
    stdin: bool,
    tty: bool,
    quiet: bool,
) -> int:
    """Run a command in a container."""
    words = click.get_current_context().meta[_META]
    if extra:
        raise click.UsageError(
            f"exec POD COMMAND is not supported (found {extra[0]!r}), use exec POD -- COMMAND instead."
        )
    if not words:
        raise click.UsageError("you must specify at least one command for the container: `exec POD -- COMMAND`.")
    with session(settings) as node:
        moment = node.state("pod", "pleg", pods=[f"{namespace}/{pod_name(name)}"])
        pod = api_pod(moment, node.settings.node, namespace, pod_name(name))
        engine = engines.of_node(node, moment)
    container_id = _running(pod, container, quiet=quiet)
    with closing(node.services.runtime(engine.settings)) as runtime:
        try:
            return _run(runtime, container_id, words, stdin=stdin, tty=_has_tty(stdin, tty))
        except Refusal as refusal:
            if refusal.kind != "not_found" or runtime.inspect(container_id) is not None:
                raise
            raise engine.missing(runtime, container_id, pod["metadata"]["name"]) from refusal


def _running(pod: Object, name: str | None, *, quiet: bool) -> str:
    """Return the runtime's id of the container. Raises Failure if the container is not running."""
    phase = pod.get("status", {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        raise Failure(f"cannot exec into a container in a completed pod; current phase is {phase}")
    part = parts.chosen(pod, name, quiet=quiet)
    state = part.status.get("state", {})
    if "running" not in state:
        why = next((one.get("reason", "") for one in state.values()), "") or "it was never started"
        raise Failure(f'container "{part.name}" in pod "{pod["metadata"]["name"]}" is not running: {why}')
    return pod_rows.bare_id(part.status["containerID"])


def _has_tty(stdin: bool, tty: bool) -> bool:
    """Return whether to allocate a TTY, which requires -i, -t and a terminal on stdin."""
    if not (stdin and tty):
        return False
    if not terminal.stdin_is_terminal():
        click.echo("Unable to use a TTY - input is not a terminal or the right kind of file", err=True)
        return False
    return True


def _run(runtime: Runtime, container_id: str, words: Sequence[str], *, stdin: bool, tty: bool) -> int:
    exec_id = runtime.create_exec(container_id, words, tty=tty, stdin=stdin)
    attached = runtime.attach_exec(exec_id, tty=tty)
    with ExitStack() as stack:
        stack.callback(attached.close)
        if tty:
            stack.enter_context(terminal.raw())
            stack.enter_context(terminal.forward_size(partial(runtime.resize_exec, exec_id)))
        if stdin:
            terminal.copy_input(attached)
        terminal.copy_output(attached)
    status = _status(runtime, exec_id)
    if status:
        click.echo(f"command terminated with exit code {status}", err=True)
    return status


def _status(runtime: Runtime, exec_id: str) -> int:
    """Wait for the command's exit status and return it: the command may close its output long before it exits."""
    pause = _FIRST_PAUSE
    while True:
        state = runtime.inspect_exec(exec_id)
        if state is None:
            raise Failure("the command's exit code is unknown: its container was removed, or Docker was restarted")
        if state.exit_code is not None:
            return state.exit_code
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
