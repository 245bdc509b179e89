"""Parses the transition tables in module docstrings.

Input: Python files. Output: `Table`s. Next: `states` draws them; tests compare them with the code. A table is an
indented block whose cells are at least two spaces apart. It has one of two headers:

    lamp    event                to
    -       Bought               off
    off     Lit, SwitchedOn      on      a note

    phase     message or time      event, next phase
    no lamp   signals.Delivered    Bought -> off
    any       a power cut          WentOut -> off      (a note)
    on        an hour has passed   Flickered

The first form names its subject; `-` means that the subject does not exist. The second form is used in modules called
`lifecycle`; its subject is given by the folder's name. A row without an arrow does not change the phase.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

NOTHING = "-"
ANY = "any"
LIFECYCLE = "lifecycle.py"
_HEAD = re.compile(r"^ {4}([a-z]+) {2,}(event {2,}to|message or time {2,}event, next phase)$", re.MULTILINE)
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
        return tuple(name for name in dict.fromkeys(names) if name not in (NOTHING, ANY))


def found(folder: Path) -> list[Table]:
    """Return the tables of all modules below a folder, sorted by subject. Raises ValueError if a subject has two."""
    by_subject: dict[str, tuple[Path, Table]] = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        if not _HEAD.search(text):
            continue
        for table in tables_of(ast.get_docstring(ast.parse(text), clean=False) or "", path):
            if table.subject in by_subject:
                raise ValueError(f"{path}: a second table of {table.subject!r}, next to {by_subject[table.subject][0]}")
            by_subject[table.subject] = path, table
    return [by_subject[subject][1] for subject in sorted(by_subject)]


def tables_of(docstring: str, path: Path) -> Iterator[Table]:
    """Yield the tables in a module's docstring; those of the second form only if the module is called `lifecycle`."""
    for head in _HEAD.finditer(docstring):
        block = docstring[head.end() + 1 :].split("\n\n", 1)[0]
        lines = [line for line in block.splitlines() if line.strip()]
        if head[2].startswith("event"):
            yield Table(head[1], tuple(row for line in lines for row in _of_events(_cells(line))))
        elif path.name == LIFECYCLE:
            rows = tuple(row for line in lines for row in _of_messages(_cells(line)))
            yield _without_any(Table(path.parent.name.removesuffix("s"), rows))


def _cells(line: str) -> tuple[str, str, str, str]:
    """Split a row into three cells and a note, which may be empty."""
    try:
        first, second, third, *note = _CELLS.split(line.strip())
    except ValueError:
        raise ValueError(f"not a row of a transition table: {line!r}; expected three cells") from None
    return first, second, third, " ".join(note)


def _of_events(cells: Sequence[str]) -> Iterator[Row]:
    source, events, target, note = cells
    return (Row(source, event, target, note) for event in events.split(", "))


def _of_messages(cells: Sequence[str]) -> Iterator[Row]:
    source, _, consequence, note = cells
    event, _, target = consequence.partition(" -> ")
    yield Row(_phase(source), event, _phase(target or source), note)


def _phase(name: str) -> str:
    return NOTHING if name.startswith("no ") else name


def _without_any(table: Table) -> Table:
    """Return the table with each row for `any` replaced by a row for each phase."""
    rows = (
        replace(row, source=phase, target=phase if row.target == ANY else row.target)
        for row in table.rows
        for phase in (table.phases if row.source == ANY else (row.source,))
    )
    return Table(table.subject, tuple(dict.fromkeys(rows)))
