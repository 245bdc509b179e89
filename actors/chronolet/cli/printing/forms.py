"""The forms of output that `get` knows, as `-o` names them.

Comes in: what stands behind `-o`, plain data. Goes out: the form's name, known to be good, or a usage error; text.
Next: `get`.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from chronolet.cli.errors import Failure
from chronolet.cli.printing import table
from chronolet.cli.printing.jsonpath import JsonPathError, parsed
from chronolet.cli.printing.plain import dump

JSONPATH = "jsonpath="
_NAMES = ("wide", "json", "yaml", "name")
FORMS = f"[{'|'.join(_NAMES)}|{JSONPATH}TEMPLATE]"


def form(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """`wide`, `json`, `yaml`, `name` or `jsonpath=TEMPLATE`; `-o=json` as well, as kubectl's users write it."""
    if value is None:
        return None
    named = value.removeprefix("=")
    if named.startswith(JSONPATH):
        try:
            parsed(named.removeprefix(JSONPATH))
        except JsonPathError as error:
            raise click.BadParameter(f"jsonpath: {error}.") from error
    elif named not in _NAMES:
        raise click.BadParameter(f"found {named!r}, expected {', '.join(_NAMES)} or {JSONPATH}TEMPLATE.")
    return named


def forms(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """What a shell may offer."""
    return [name for name in (*_NAMES, JSONPATH) if name.startswith(incomplete)]


def show_object(plain: Any, output: str) -> None:
    """As JSON or YAML, or what a JSONPath template prints of it: no line end is added then, as kubectl adds none."""
    if not output.startswith(JSONPATH):
        click.echo(dump(plain, output))
        return
    try:
        text = parsed(output.removeprefix(JSONPATH)).text(plain)
        click.echo(spelled_out(text) if sys.stdout.isatty() else text, nl=False)
    except JsonPathError as error:
        raise Failure(f"-o jsonpath: {error}") from error


def spelled_out(text: str) -> str:
    """The text without what could steer a terminal; ends of lines and tabulators are the template's own."""
    return "".join(one if one in "\n\t" else table.plain(one) for one in text)
