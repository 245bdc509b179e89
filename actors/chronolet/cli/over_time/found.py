"""The result of `chronolet history`, as plain data and as tables.

Input: none. Output: `Found`. Next: `command`, which prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chronolet.cli.printing import ages


class Table(NamedTuple):
    """The names of columns, and rows of text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Found(NamedTuple):
    """What happened over time: as plain data, and as tables. `missing`: the names for which nothing was found.
    `notes`: lines about what could not be read.
    """

    plain: dict[str, Any]
    tables: Sequence[Table]
    missing: Sequence[str] = ()
    notes: Sequence[str] = ()


def shown_time(milliseconds: int | None) -> str:
    """Format a time in UTC; `<none>` if there is none, `<unknown>` for 0."""
    if milliseconds is None:
        return "<none>"
    return ages.rfc3339(milliseconds) if milliseconds else "<unknown>"
