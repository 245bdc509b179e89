"""Defines the request to `get`, and its result.

Input: the command line. Output: `Query`; `Found`, which the module of each type returns. Next: `command`, which prints
the objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chronolet.cli.get import selecting, sorting
from chronolet.cli.history import event_options

KINDS = {
    "pods": ("pod", "devices"),
    "containers": ("pod", "devices"),
    "devices": ("devices",),
    "images": ("image_gc",),
    "nodes": ("qos", "pleg", "devices"),
    "events": (),
}
"""The kinds of actors whose states tell the objects of a type, for types whose past the log records."""


class Query(NamedTuple):
    """A request for the objects of one type, and their format."""

    type: str
    names: tuple[str, ...]
    """The requested names; empty: all."""
    namespace: str | None
    """The requested namespace; None: all namespaces."""
    output: str | None
    headers: bool
    labels: bool
    """Whether to show labels in a column."""
    matches: selecting.Predicate
    order: sorting.Order | None
    events: event_options.Selection

    def names_one_of(self, *names: str) -> bool:
        """Return whether one of these names is requested."""
        return any(name in self.names for name in names)

    def sorted(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return the items in the requested order, or unchanged if no order was requested."""
        return self.order(items) if self.order else items


class Found(NamedTuple):
    """The objects found: as plain data, as names and as a table."""

    items: Sequence[Any]
    names: Sequence[str]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
