"""Lays out the pages of `describe`: titles with values next to them or below them.

Input: titles and values. Output: lines in kubectl's format, with control characters in text from pods escaped.
Next: the `_section` modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chronolet.cli.get import pod_rows
from chronolet.cli.printing import ages, table

COLUMN, INNER_COLUMN = 18, 20


def line(title: str, text: str, indent: int = 0, column: int = 0) -> str:
    """Format `Title:   text` with the text at `column`; 0 selects the usual column for the indent."""
    begin = " " * indent + (f"{title}:" if title else "")
    width = column or (INNER_COLUMN if indent else COLUMN)
    padded = begin.ljust(width) if len(begin) < width else f"{begin}  "
    return f"{padded}{table.plain(text)}".rstrip()


def mapping(title: str, values: Mapping[str, str], mark: str, column: int = 0) -> Iterator[str]:
    """Yield a line for each `name<mark>value`, sorted by name, the first one next to the title; without values,
    `<none>`.
    """
    yield from stacked(title, [f"{name}{mark}{value}" for name, value in sorted(values.items())], column)


def stacked(title: str, texts: Sequence[str], column: int = 0) -> Iterator[str]:
    """Yield a line for each text, the first one next to the title; without texts, `<none>`."""
    for index, text in enumerate(texts or ["<none>"]):
        yield line("" if index else title, text, column=column)


def listed(title: str, texts: Sequence[str], absent: str = "") -> Iterator[str]:
    """Yield the title and a line for each text. Without texts, yield the title with `absent`, unless that is empty."""
    if texts:
        yield f"    {title}:"
        yield from (f"      {table.plain(text)}" for text in texts)
    elif absent:
        yield line(title, absent, 4)


def pairs(rows: Sequence[tuple[str, str]]) -> Sequence[str]:
    """Return `name:  value` lines with aligned values."""
    width = max((len(name) for name, _ in rows), default=0) + 3
    return [f"{name}:".ljust(width) + value for name, value in rows]


def moment(text: str | None) -> str:
    """Format a time from the API in the local time zone; return an empty string for None."""
    return ages.local(pod_rows.milliseconds(text)) if text else ""


def truth(value: object) -> str:
    """Return `True` or `False` as text, depending on whether the value is truthy."""
    return str(bool(value))
