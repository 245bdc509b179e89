"""Compares two versions of an object and lists the differences by path.

Input: plain data, before and after. Output: the path and both values of each difference; lines such as
`spec.containers[app].image: "a:1" -> "a:2"`. Next: `apply --dry-run`, `diff`.

Items of a list are compared by name if each has one (`name` or `type`, as in Kubernetes), else by index.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

ABSENT: Final = object()
"""Stands for a value that one version does not have."""
_NAMES = ("name", "type")


class Difference(NamedTuple):
    """A value that was changed, added or removed; `before` or `after` is ABSENT if that version does not have it."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {_shown(self.before)} -> {_shown(self.after)}"


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Yield each value that differs, in the order of the versions."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in _all(before, after):
            below = f"{path}.{key}" if path else str(key)
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), below)
    elif isinstance(before, list) and isinstance(after, list):
        field = next((name for name in _NAMES if _is_named(before, name) and _is_named(after, name)), None)
        former, later = _by(field, before), _by(field, after)
        for key in _all(former, later):
            yield from differences(former.get(key, ABSENT), later.get(key, ABSENT), f"{path}[{key}]")
    elif before is not after and before != after:
        yield Difference(path, before, after)


def _all(before: dict[Any, Any], after: dict[Any, Any]) -> list[Any]:
    return [*before, *(key for key in after if key not in before)]


def _is_named(items: Sequence[Any], field: str) -> bool:
    """Return whether each item has another text in this field."""
    names = [one.get(field) for one in items if isinstance(one, dict)]
    return len(names) == len(items) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _by(field: str | None, items: Sequence[Any]) -> dict[Any, Any]:
    return {one[field]: one for one in items} if field else dict(enumerate(items))


def _shown(value: Any) -> str:
    return "(none)" if value is ABSENT else json.dumps(value)
