"""Records the entries themselves: their fields in columns, their texts in blocks. Pure.

Input: entries with what a viewer says about them. Output: parts. Next: `recording`.

Texts are by far the largest part and only a few of them are visible at once, so the page decompresses a block when it
shows or searches one of its texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.history.page.columns import Column, Dictionary, Differences, Part, packed, packed_json
from chronolet.history.page.viewing import Severity
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.times import time_of

BLOCK = 2_048
"""The number of texts in a block."""


class EntryColumns:
    """The entries of a page, in order of position."""

    def __init__(self) -> None:
        self._milliseconds = Differences("entry.milliseconds")
        self._number = Differences("entry.number")
        self._behind = Column("entry.behind", "f64")
        """By how much the time of the entry is behind that of its position, which is in the way of a clock."""
        self._cause = Column("entry.cause", "f64")
        """How many numbers before this one the entry's cause is; 0 if no entry before it caused it."""
        self._words = {name: Column(f"entry.{name}", "u32") for name in ("type", "entity", "subject", "origin")}
        self._dictionaries: dict[str, Dictionary[str]] = {name: Dictionary() for name in self._words}
        self._table = Column("entry.table", "u8")
        self._object = Column("entry.object", "u32")
        self._severity = Column("entry.severity", "u8")
        self._lines: list[str] = []
        self._blocks: list[Part] = []

    def __len__(self) -> int:
        return len(self._severity)

    def add(self, entry: Entry, table: int, number: int, severity: Severity, text: str, *, cause: str = "") -> None:
        """Append an entry about the object with this number of this table. `text` is one line. `cause`: what to show
        of a cause that is no entry before it, such as the id of a request.
        """
        position = entry.position
        self._milliseconds.add(position.milliseconds)
        self._number.add(position.n)
        self._behind.add(position.milliseconds - time_of(entry))
        distance = _distance(entry)
        self._cause.add(distance)
        values = (entry.type, entry.entity, entry.subject, "" if distance else cause)
        for (name, column), value in zip(self._words.items(), values, strict=True):
            column.add(self._dictionaries[name].number(value))
        self._table.add(table)
        self._object.add(number)
        self._severity.add(severity)
        self._lines.append(text)
        if len(self._lines) == BLOCK:
            self._end_block()

    def parts(self) -> Iterator[Part]:
        """Pack the columns. The blocks of texts are separate, because the page does not need them to begin with."""
        for differences in (self._milliseconds, self._number):
            yield differences.part()
        for name, dictionary in self._dictionaries.items():
            yield packed_json(f"entry.{name}.words", dictionary.values())
        for column in (self._behind, self._cause, *self._words.values(), self._table, self._object, self._severity):
            yield column.part()

    def blocks(self) -> list[Part]:
        """Pack the texts that are left and return all blocks."""
        if self._lines:
            self._end_block()
        return self._blocks

    def _end_block(self) -> None:
        self._blocks.append(packed(f"text.{len(self._blocks)}", "text", "\n".join(self._lines).encode()))
        self._lines.clear()


def _distance(entry: Entry) -> int:
    """Return how many numbers the entry is after its cause; 0 if its cause is not an entry before it."""
    try:
        return max(0, entry.position.n - Position.parse(entry.cause).n)
    except ValueError:
        return 0
