"""The forms of output that `get` knows, as `-o` names them.

Comes in: what stands behind `-o`. Goes out: the form's name, known to be good; a usage error otherwise. Next: `get`.
"""

from __future__ import annotations

import click

from chronolet.cli.jsonpath import JsonPathError, parsed

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
