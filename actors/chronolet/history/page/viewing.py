"""Defines what a page shows of each log entry: objects, their rows, and texts. Pure.

Input: none. Output: the types between a viewer, which understands events, and `recording`, which only stores what the
viewer returns. Next: `recording`; `cli.history.page` is the viewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from chronolet_schemas.envelope import Entry

Cell = tuple[str | int, ...]
"""A cell of a table. The items with odd indexes are times in milliseconds since the epoch, shown as the age that they
have at the page's moment; the others are the texts around them.
"""


class Look(IntEnum):
    """How a row is drawn. The worst one of a span of time has the highest number."""

    GONE = 0
    IDLE = 1
    GOOD = 2
    WAITING = 3
    BAD = 4


class Severity(IntEnum):
    """How much attention an entry deserves. The most important one of a span of time has the highest number."""

    NORMAL = 0
    NOTABLE = 1
    WARNING = 2


class Table(NamedTuple):
    """A kind of objects. `name` begins the links to them, such as `pod`. `parent`: the table of the objects to which
    these belong; the name of an object is then that of its parent, a slash, and its own.
    """

    name: str
    title: str
    head: tuple[str, ...]
    parent: str = ""


class Object(NamedTuple):
    """An object: the name of its table, and its own name, which is unique there, such as `default/web`."""

    table: str
    name: str


class Row(NamedTuple):
    """What a page shows of an object from an entry on."""

    cells: tuple[Cell, ...]
    look: Look
    rank: int = 0
    """Rows are sorted by their parents' names, then by rank, then by name."""


class Change(NamedTuple):
    """An object whose row is different from now on. `row`: None if the object is gone."""

    about: Object
    row: Row | None


class Seen(NamedTuple):
    """What an entry means to the page: the object that it is about, its text, and the rows that it changed."""

    about: Object
    severity: Severity
    text: str
    changes: Iterable[Change] = ()
    cause: str = ""
    """The entry's cause as text, empty if it has none. A page shows the number of a cause that is an entry itself."""


class Viewer(Protocol):
    """Understands the entries of one log, one after the other."""

    @property
    def tables(self) -> Sequence[Table]:
        """The tables, in the order in which the page shows them. A parent comes before its children."""

    def begin(self) -> Iterable[Change]:
        """Return the rows of all objects that exist before the first entry."""

    def read(self, entry: Entry) -> Seen:
        """Fold the next entry."""
