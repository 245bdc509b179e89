"""`chronolet completion bash|zsh|fish`: prints a completion script, which calls chronolet for completions.

Input: the shell's name. Output: click's script for it. Next: `candidates`, which provides the completions.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from chronolet.cli.options import Command

PROGRAM = "chronolet"

_HELP = """\b
To load completions in every new shell:
  bash   echo 'source <(chronolet completion bash)' >> ~/.bashrc
  zsh    echo 'source <(chronolet completion zsh)' >> ~/.zshrc
         (after `autoload -U compinit; compinit`)
  fish   chronolet completion fish > ~/.config/fish/completions/chronolet.fish
Names of pods come from the node's log, if it responds within a second."""


@click.command(cls=Command, epilog=_HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    script = get_completion_class(shell)
    assert script is not None  # noqa: S101 - click has had these three since 8.0
    root = click.get_current_context().find_root().command
    click.echo(script(root, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
