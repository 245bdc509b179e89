"""The package's manual has a page for each command, with every option that the command has."""

from __future__ import annotations

import gzip
from pathlib import Path

import click

from chronolet.cli.main import cli
from tests.deploy.packages import run


def pages(unpacked: Path) -> dict[str, str]:
    """Return the text of each page without groff's escapes, by file name."""
    found = {}
    for path in (unpacked / "usr/share/man/man1").iterdir():
        text = gzip.decompress(path.read_bytes()).decode()
        found[path.name] = text.replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "").replace("\\e", "\\")
    return found


def all_commands(command: click.Command, name: str) -> dict[str, click.Command]:
    found = {name: command}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            one = command.get_command(context, below)
            assert one is not None
            found |= all_commands(one, f"{name}-{below}")
    return found


def test_every_command_has_a_page_with_all_its_options(unpacked: Path) -> None:
    written, commands = pages(unpacked), all_commands(cli, "chronolet")
    assert written.keys() == {f"{name}.1.gz" for name in commands}
    assert len(commands) > 15
    checked = 0
    for name, command in commands.items():
        page = " ".join(written[f"{name}.1.gz"].split())
        assert " ".join((command.help or "").split()) in page.replace(".PP ", "")
        for record in filter(None, (one.get_help_record(click.Context(command)) for one in command.params)):
            assert f".TP .B {record[0]} {' '.join(record[1].split())}" in page, (name, record)
            checked += 1
    assert checked > 150


def test_groff_understands_every_page(unpacked: Path) -> None:
    for path in sorted((unpacked / "usr/share/man/man1").iterdir()):
        text = gzip.decompress(path.read_bytes()).decode()
        requests = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
        assert requests <= {".TH", ".SH", ".PP", ".TP", ".B", ".BR", ".nf", ".fi"}, path.name
        assert text.index(".SH NAME") < text.index(".SH SYNOPSIS") < text.index(".SH DESCRIPTION")
    assert run("bash", "-n", unpacked / "usr/share/bash-completion/completions/chronolet") == ""
