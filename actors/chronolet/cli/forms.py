"""The forms of output that `get` knows, as `-o` names them.

Comes in: what stands behind `-o`. Goes out: the form's name, known to be good; a usage error otherwise. Next: `get`.
"""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from chronolet.cli.jsonpath import JsonPathError, parsed

JSONPATH = "jsonpath="
_NAMES = ("wide", "json", "yaml", "name")
FORMS = f"[{'|'.join(_NAMES)}|{JSONPATH}TEMPLATE]"


class Form(click.ParamType):
    """`wide`, `json`, `yaml`, `name` or `jsonpath=TEMPLATE`; `-o=json` as well, as kubectl's users write it."""

    name = "form"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        form = value.removeprefix("=")
        if form.startswith(JSONPATH):
            try:
                parsed(form.removeprefix(JSONPATH))
            except JsonPathError as error:
                self.fail(f"jsonpath: {error}.", param, ctx)
        elif form not in _NAMES:
            self.fail(f"found {form!r}, expected {', '.join(_NAMES)} or {JSONPATH}TEMPLATE.", param, ctx)
        return form

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in (*_NAMES, JSONPATH) if name.startswith(incomplete)]
