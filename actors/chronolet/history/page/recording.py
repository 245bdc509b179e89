"""Collects what a page shows, entry by entry. Pure.

Input: a viewer, entries. Output: the parts of the page's data. Next: `document`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chronolet.history.page.columns import Part, packed_json
from chronolet.history.page.entry_columns import BLOCK, EntryColumns
from chronolet.history.page.tables import TableColumns
from chronolet.history.page.viewing import Change, Viewer
from chronolet_schemas.envelope import Entry

FORMAT = 1


class Recording:
    """The data of a page, in columns.

    It is in memory until the page is written: some 60 bytes for each entry, 20 and 4 for each column of cells for each
    row, the compressed texts of the entries, and each distinct name, cause and cell once, uncompressed.
    """

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._tables = {table.name: TableColumns(table) for table in viewer.tables}
        self._numbers = {table.name: number for number, table in enumerate(viewer.tables)}
        self._entries = EntryColumns()
        for change in viewer.begin():
            self._set(change, 0)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def read(self, entries: Iterable[Entry]) -> None:
        """Record entries, which follow those recorded so far."""
        for entry in entries:
            seen = self._viewer.read(entry)
            for change in seen.changes:  # first, so that objects are numbered in the order of their rows
                self._set(change, len(self._entries) + 1)
            table, name = seen.about
            number = self._tables[table].number(name)
            self._entries.add(entry, self._numbers[table], number, seen.severity, seen.text, cause=seen.cause)

    def _set(self, change: Change, begin: int) -> None:
        self._tables[change.about.table].set(change.about.name, change.row, begin)

    def parts(self, facts: Mapping[str, Any]) -> Iterator[Part]:
        """Pack what the page needs to begin with. `facts` are added to its summary."""
        summary = {
            **facts,
            "format": FORMAT,
            "entries": len(self._entries),
            "block": BLOCK,
            "tables": [table._asdict() for table in self._viewer.tables],
        }
        yield packed_json("summary", summary)
        for table in self._tables.values():
            yield from table.parts()
        yield from self._entries.parts()

    def texts(self) -> Iterable[Part]:
        """Return the texts of the entries, packed in blocks."""
        return self._entries.blocks()
