"""`chronolet bundle`: the group of its subcommands, each of which is loaded when it is used.

Input: the command line. Output: the subcommand's. Next: `save`, `open`, `anonymise`.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

_COMMANDS = ("save", "open", "anonymise")


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: Any = importlib.import_module(f"chronolet.cli.bundle.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101 - each module defines `command`
        return command


@click.group(cls=_Group)
def command() -> None:
    """Save a window of the node's log in one file without secrets, and read such files anywhere."""
