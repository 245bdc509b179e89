"""Writes the manual pages of `chronolet`, one for each command, from the command line's own help texts.

Input: a folder. Output: chronolet.1, chronolet-run.1, chronolet-gc-plan.1 and so on in it. Next: scripts/deb, which
runs this with the package's own modules, so that a page never differs from the command that it describes.
Source: man-pages(7), groff_man(7).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from chronolet.cli.main import cli

FILES = (
    ("/etc/default/chronolet", "settings of the services, as environment variables"),
    ("/etc/chronolet/manifests", "Pod manifests that the services run"),
    ("/etc/chronolet/groups/GROUP.env", "actors and HTTP port of chronolet@GROUP.service"),
    ("/var/lib/chronolet", "state folder"),
)
STATUSES = (("0", "success"), ("1", "failure"), ("2", "wrong usage"))


def commands(command: click.Command, *names: str) -> Iterator[tuple[tuple[str, ...], click.Context]]:
    """Yield the words that call a command, and its context; then the same for each command below it."""
    context = click.Context(command, info_name=" ".join(names))
    yield names, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from commands(found, *names, name)


def page(names: Sequence[str], context: click.Context, related: Sequence[str]) -> str:
    """Return the source of a command's page. `related`: the names of the pages under SEE ALSO."""
    command, title = context.command, "-".join(names)
    texts = (command.help or "").strip().split("\n\n")
    options = filter(None, (one.get_help_record(context) for one in command.get_params(context)))
    lines = [
        f'.TH "{title.upper()}" "1" "" "chronolet" "User Commands"',
        ".SH NAME",
        f"{escaped(title)} \\- {escaped(_summary(texts[0]))}",
        ".SH SYNOPSIS",
        f".B {escaped(' '.join(names))}",
        escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(texts),
        *_definitions("OPTIONS", list(options)),
    ]
    if command.epilog:
        lines += [".SH NOTES", *_paragraphs(command.epilog.strip().split("\n\n"))]
    if len(names) == 1:
        lines += _definitions("FILES", FILES)
    lines += [*_definitions("EXIT STATUS", STATUSES), ".SH SEE ALSO"]
    lines += [f".BR {escaped(name)} (1)" for name in related]
    return "\n".join(lines) + "\n"


def _definitions(heading: str, terms: Sequence[tuple[str, str]]) -> list[str]:
    return [f".SH {heading}", *(line for term, text in terms for line in (".TP", f".B {escaped(term)}", escaped(text)))]


def _summary(text: str) -> str:
    """Return the first sentence of a text, without its full stop."""
    return " ".join(text.split()).split(". ")[0].removesuffix(".")


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield ".PP"
        if text.lstrip().startswith("\b"):  # click's marker for a paragraph that keeps its line breaks
            yield from (".nf", *map(escaped, text.strip("\b\n ").splitlines()), ".fi")
        else:
            yield escaped(text)


def escaped(text: str) -> str:
    """Escape text so that groff prints it literally, and put it on one line."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{plain}" if plain.startswith(".") else plain


def main(folder: Path) -> None:
    """Write the pages of all commands into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = list(commands(cli, "chronolet"))
    for names, context in found:
        below = ["-".join(other) for other, _ in found if other[:-1] == names]
        above = ["-".join(names[:-1])] if names[1:] else []
        (folder / f"{'-'.join(names)}.1").write_text(page(names, context, [*above, *below]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
