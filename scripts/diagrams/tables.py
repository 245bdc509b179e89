"""Transition tables, as docstrings of modules have them.

Input: Python files. Output: `Table`s. Next: `states` draws them; tests compare them with the code. A table is an
indented block that begins with the head `<subject>  event  to`. Cells are two spaces apart; a fourth one is a note:

    container       event                          to
    pulling         ImageReady, ImageFailed        image_ready      a note
    -               SpecAccepted                   waiting

`-` stands for "does not exist". A cell of events may list several, with commas.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NOTHING = "-"
HEAD = re.compile(r"^ {4}([a-z]+) {2,}event {2,}to$", re.MULTILINE)
_CELLS = re.compile(r" {2,}")


@dataclass(frozen=True)
class Row:
    """One transition. `source` and `target` are phases or NOTHING."""

    source: str
    event: str
    target: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """All transitions of one subject, in the order of the docstring."""

    subject: str
    rows: tuple[Row, ...]

    @property
    def phases(self) -> tuple[str, ...]:
        """Every phase, in the order in which the table first names it as a source, then as a target."""
        names = (*(row.source for row in self.rows), *(row.target for row in self.rows))
        return tuple(name for name in dict.fromkeys(names) if name != NOTHING)


def found(folder: Path) -> list[Table]:
    """The tables of all modules below a folder, by subject. Raises ValueError if a subject has two."""
    by_subject: dict[str, Table] = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        if not HEAD.search(text):
            continue
        for table in tables_of(ast.get_docstring(ast.parse(text), clean=False) or ""):
            if table.subject in by_subject:
                raise ValueError(f"{path}: a second table of {table.subject!r}, expected one in all modules")
            by_subject[table.subject] = table
    return [by_subject[subject] for subject in sorted(by_subject)]


def tables_of(docstring: str) -> Iterator[Table]:
    """The tables of one docstring."""
    for head in HEAD.finditer(docstring):
        block = docstring[head.end() + 1 :].split("\n\n", 1)[0]
        yield Table(head[1], tuple(row for line in block.splitlines() if line.strip() for row in _rows(line)))


def _rows(line: str) -> Iterator[Row]:
    cells = _CELLS.split(line.strip())
    try:
        source, events, target, *note = cells
    except ValueError:
        raise ValueError(f"not a row of a transition table: {line!r}; expected source, event, target") from None
    for event in events.split(", "):
        yield Row(source, event, target, " ".join(note))
