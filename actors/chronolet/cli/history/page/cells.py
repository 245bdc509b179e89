"""Converts the rows of `get` to rows of the page.

Input: a row whose ages were formatted for `ages.LATER`. Output: cells. Next: `pods`, `node`.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronolet.cli.printing import ages
from chronolet.cli.printing.table import plain
from chronolet.history.page.viewing import Cell


def cells(row: Iterable[str]) -> tuple[Cell, ...]:
    """Return the cells of a row, escaped as `get` prints them, with the beginnings of ages as numbers."""
    return tuple(_cell(text) for text in row)


def _cell(text: str) -> Cell:
    parts = ages.open_ages(text)
    return tuple(int(part) if number % 2 else plain(part) for number, part in enumerate(parts))
