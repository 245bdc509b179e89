"""The differences between objects at two moments: which were added, removed or changed, and in which fields. Pure.

Input: objects in the form of `get -o json`, by namespace and name. Output: a `Change` for each object that differs; its
lines of text; its plain data. Next: `diff` and `replay`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from chronolet.cli.printing.differences import ABSENT, Difference, differences
from chronolet.cli.printing.table import plain

Object = dict[str, Any]
Key = tuple[str, str]
"""The namespace of an object, empty if it has none, and its name as `get -o name` prints it."""

_VERSION = "metadata.resourceVersion"
"""The position of an object's last event. It differs whenever anything does."""


class Change(NamedTuple):
    """What happened to an object. `fields` is empty if it was added or removed."""

    key: Key
    what: str
    fields: tuple[Difference, ...] = ()


def changes(before: Mapping[Key, Object], after: Mapping[Key, Object]) -> Iterator[Change]:
    """Yield the objects that differ, ordered by namespace and name."""
    for key in sorted({*before, *after}):
        if key not in before:
            yield Change(key, "added")
        elif key not in after:
            yield Change(key, "removed")
        elif fields := tuple(one for one in differences(before[key], after[key]) if one.path != _VERSION):
            yield Change(key, "changed", fields)


def lines(found: Sequence[Change]) -> Iterator[str]:
    """Yield a line for each object, then one for each of its fields. The namespace `default` is not shown."""
    for (namespace, name), what, fields in found:
        yield f"{name}{f' in {namespace}' if namespace not in ('', 'default') else ''}: {what}"
        yield from (f"  {plain(str(one))}" for one in fields)


def as_plain(change: Change) -> Object:
    """Return the change as plain data. A field that one version does not have lacks that version's value."""
    (namespace, name), what, fields = change
    return {
        "namespace": namespace,
        "name": name,
        "change": what,
        "fields": [
            {"path": one.path}
            | ({"before": one.before} if one.before is not ABSENT else {})
            | ({"after": one.after} if one.after is not ABSENT else {})
            for one in fields
        ],
    }
