"""Checks `chronolet` command lines against the command tree, without running anything.

Input: shell text. Output: the command lines in it, and an error for each one that its command's parser rejects. Next:
`test_blocks`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import click

from chronolet.cli.main import cli

_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?$")
_WHOLE_HERE_DOCUMENT = re.compile(r"^([^\n]*)<<'?(\w+)'?\n(.*?^)\2$", re.MULTILINE | re.DOTALL)
SEPARATORS = frozenset("|&;()")
PROGRAM = "chronolet"


def shell_lines(text: str, *, console: bool) -> Iterator[str]:
    """Yield the input lines of a block, with continuation lines joined. `console`: only lines after a prompt."""
    document = ""
    """The word that ends the current here-document; empty outside here-documents."""
    for line in text.replace("\\\n", " ").splitlines():
        if document:
            document = "" if line == document else document
            continue
        if console and line.startswith("$ "):
            yield line[2:]
        elif not console and line.strip():
            yield line
        if begun := _HERE_DOCUMENT.search(line):
            document = begun[1]


def here_documents(text: str) -> Iterator[tuple[str, str]]:
    """Yield the command and the text of each here-document in a block."""
    return ((found[1].strip(), found[3]) for found in _WHOLE_HERE_DOCUMENT.finditer(text))


def command_lines(line: str) -> Iterator[Sequence[str]]:
    """Yield the arguments of each call of `chronolet` in a shell line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in (*lexer, ";"):
        if not SEPARATORS.issuperset(word):
            words.append(word)
            continue
        while words and "=" in words[0]:  # an assignment before the command
            del words[0]
        if words and words[0] == PROGRAM:
            yield _without_redirections(words[1:])
        words = []


def _without_redirections(words: Sequence[str]) -> Sequence[str]:
    for at, word in enumerate(words):
        if set(word) <= {"<", ">"}:
            return words[:at]
    return words


def error_of(arguments: Sequence[str]) -> str:
    """Return why the command line would be rejected; empty if it is valid."""
    try:
        _parse(cli, PROGRAM, arguments, None)
    except click.UsageError as error:
        return error.format_message()
    return ""


def _parse(command: click.Command, name: str, arguments: Sequence[str], parent: click.Context | None) -> None:
    if {"-h", "--help"} & set(arguments):
        return
    if not isinstance(command, click.Group):
        command.make_context(name, list(arguments), parent=parent)
        return
    # With the command's settings: click keeps the first help option that it makes for a subcommand.
    context = click.Context(command, parent=parent, info_name=name, **command.context_settings)
    given, rest, _ = command.make_parser(context).parse_args(list(arguments))
    if rest:
        nested, below, more = command.resolve_command(context, rest)
        assert below is not None
        _parse(below, nested or "", more, context)
    elif not any(parameter.is_eager and given.get(parameter.name or "") for parameter in command.params):
        raise click.UsageError("Missing command.", context)
