"""Formats tables as kubectl does: left-aligned columns, three spaces apart, without lines between them.

Input: a header and rows of text. Output: lines. Control characters in text from pods are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

_GAP = 3


def plain(text: str) -> str:
    """Return the text on one line, with control characters escaped: a pod must not control the reader's terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def lines(head: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "") -> list[str]:
    """Format the header (if it is not empty) and the rows. Every column is as wide as its widest cell."""
    everything = [[plain(cell) for cell in row] for row in ([head] if head else []) + list(rows)]
    widths = [max(map(len, column)) + _GAP for column in zip(*everything, strict=True)]
    return [
        indent + "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in everything
    ]


def show(head: Sequence[str], rows: Sequence[Sequence[str]], *, headers: bool = True) -> None:
    """Print a table."""
    for line in lines(head if headers else (), rows):
        click.echo(line)


class Growing:
    """A table that grows: a column widens when a cell needs more space. The header precedes the first row."""

    def __init__(self, head: Sequence[str]) -> None:
        self._ahead = [list(head)] if head else []
        self._widths: list[int] = []

    def lines(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Format more rows."""
        if not rows:
            return []
        cells = self._ahead + [[plain(cell) for cell in row] for row in rows]
        self._ahead = []
        before = self._widths or [0] * len(cells[0])
        self._widths = [
            max(width, *(len(cell) + _GAP for cell in column))
            for width, column in zip(before, zip(*cells, strict=True), strict=True)
        ]
        return [
            "".join(cell.ljust(width) for cell, width in zip(row, self._widths, strict=True)).rstrip() for row in cells
        ]
