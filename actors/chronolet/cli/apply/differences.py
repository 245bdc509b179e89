"""Compares two versions of an object and lists the differences by path.

Input: plain data, before and after. Output: lines such as `spec.containers[0].image: "a:1" -> "a:2"`. Next: `apply
--dry-run`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_ABSENT = object()


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each value that was changed, added or removed."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            below = f"{path}.{key}" if path else str(key)
            yield from differences(before.get(key, _ABSENT), after.get(key, _ABSENT), below)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            yield from differences(_item(before, index), _item(after, index), f"{path}[{index}]")
    elif before is not after and before != after:
        yield f"{path}: {_shown(before)} -> {_shown(after)}"


def _item(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else _ABSENT


def _shown(value: Any) -> str:
    return "(none)" if value is _ABSENT else json.dumps(value)
