"""Sorts the objects of `get` by a JSONPath.

Input: the value of `--sort-by`, plain objects. Output: the objects in order. Next: `get`.
Source: kubectl's pkg/cmd/get/sorter.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

Order = Callable[[Sequence[Any]], list[Any]]


def order(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> Order | None:
    """Build a function that sorts objects by the first result of a JSONPath; objects without a result come first.

    The path may be given as `.metadata.name` or `{.metadata.name}`; an invalid one is a usage error. Returns None if no
    path is given.
    """
    if value is None:
        return None
    from chronolet.cli.printing.jsonpath import JsonPathError, relaxed  # noqa: PLC0415 - few commands sort

    try:
        template = relaxed(value)
    except JsonPathError as error:
        raise click.BadParameter(f"{error}.") from error

    def key(item: Any) -> tuple[int, float, str]:
        try:
            found = template.found(item)
        except JsonPathError:
            found = []
        return _rank(found[0]) if found else (0, 0, "")

    return lambda items: sorted(items, key=key)


def _rank(value: Any) -> tuple[int, float, str]:
    """Return a value's sort key: numbers come first, by value; then everything else, as text."""
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0, str(value))
