"""Records the rows of one table's objects over time. Pure.

Input: rows, in the order of the log. Output: parts: the objects' names; for each row, when it begins, how it looks, and
its cells. Next: `recording`.

The rows of an object are consecutive, oldest first, so the row at a moment is found by bisection for every moment.
Each column of cells has a dictionary of its own: most cells of an object are equal from row to row.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.history.page.columns import Column, Dictionary, Part, packed_json
from chronolet.history.page.viewing import Cell, Look, Row, Table


class TableColumns:
    """The rows of a table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._objects: Dictionary[str] = Dictionary()
        self._object = Column("", "u32")
        """The number of each row's object."""
        self._begin = Column(f"{table.name}.begin", "u32")
        self._look = Column(f"{table.name}.look", "u8")
        self._rank = Column(f"{table.name}.rank", "f64")
        self._cells = tuple(Column(f"{table.name}.{number}", "u32") for number, _ in enumerate(table.head))
        self._words: tuple[Dictionary[Cell], ...] = tuple(Dictionary() for _ in table.head)
        self._rows: dict[str, Row] = {}
        """The current rows, by the name of the object."""

    def number(self, name: str) -> int:
        """Return the number of an object, which need not have a row."""
        return self._objects.number(name)

    def set(self, name: str, row: Row | None, begin: int) -> None:
        """Record that an object has this row from now on; None: it is gone. `begin`: the number of entries up to and
        including the one that changed it. Rows of one entry replace each other.
        """
        if row == self._rows.get(name):
            return
        if row is None:
            del self._rows[name]
        else:
            self._rows[name] = row
        self._object.add(self.number(name))
        self._begin.add(begin)
        self._look.add(Look.GONE if row is None else row.look)
        self._rank.add(0 if row is None else row.rank)
        cells = ((),) * len(self._cells) if row is None else row.cells
        for column, words, cell in zip(self._cells, self._words, cells, strict=True):
            column.add(words.number(cell))

    def parts(self) -> Iterator[Part]:
        """Pack the table, with the rows in order of their objects."""
        order = sorted(range(len(self._object)), key=self._object.__getitem__)
        names = self._objects.values()
        starts = Column(f"{self._table.name}.start", "u32")
        at = 0
        for number, _ in enumerate(names):
            starts.add(at)
            while at < len(order) and self._object[order[at]] == number:
                at += 1
        starts.add(at)
        yield packed_json(f"{self._table.name}.objects", names)
        yield starts.part()
        for column in (self._begin, self._look, self._rank):
            yield column.part(order)
        for number, (column, words) in enumerate(zip(self._cells, self._words, strict=True)):
            yield packed_json(f"{self._table.name}.{number}.words", words.values())
            yield column.part(order)
