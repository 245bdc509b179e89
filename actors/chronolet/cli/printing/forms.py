"""Validates and applies the output formats of `-o` in `get` and `events`.

Input: the value of `-o`; plain data. Output: the validated format, or a usage error; the formatted data.
Next: `get`, `events`.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from chronolet.cli.errors import Failure
from chronolet.cli.printing import table
from chronolet.cli.printing.plain import dump

JSONPATH = "jsonpath="
_NAMES = ("wide", "json", "yaml", "name")
FORMS = f"[{'|'.join(_NAMES)}|{JSONPATH}TEMPLATE]"


def form(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Validate `wide`, `json`, `yaml`, `name` or `jsonpath=TEMPLATE`; return None if the flag is not given. Accepts
    `-o=json` as kubectl does.
    """
    if value is None:
        return None
    named = value.removeprefix("=")
    if named.startswith(JSONPATH):
        from chronolet.cli.printing.jsonpath import JsonPathError, parsed  # noqa: PLC0415 - few commands use one

        try:
            parsed(named.removeprefix(JSONPATH))
        except JsonPathError as error:
            raise click.BadParameter(f"jsonpath: {error}.") from error
    elif named not in _NAMES:
        raise click.BadParameter(f"found {named!r}, expected {', '.join(_NAMES)} or {JSONPATH}TEMPLATE.")
    return named


def forms(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the shell completions for `-o`."""
    return [name for name in (*_NAMES, JSONPATH) if name.startswith(incomplete)]


def show_object(plain: Any, output: str) -> None:
    """Print an object as JSON, as YAML or with a JSONPath template, whose output gets no newline, as in kubectl."""
    if not output.startswith(JSONPATH):
        click.echo(dump(plain, output))
        return
    from chronolet.cli.printing.jsonpath import JsonPathError, parsed  # noqa: PLC0415 - few commands use one

    try:
        text = parsed(output.removeprefix(JSONPATH)).text(plain)
        click.echo(spelled_out(text) if sys.stdout.isatty() else text, nl=False)
    except JsonPathError as error:
        raise Failure(f"-o jsonpath: {error}") from error


def spelled_out(text: str) -> str:
    """Escape control characters other than newlines and tabs, because they could change the terminal's state."""
    return "".join(one if one in "\n\t" else table.plain(one) for one in text)
