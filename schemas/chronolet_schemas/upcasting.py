"""How data of an older version of a type becomes data of the next.

A published event never changes. A new version comes with a function from the old version's plain map to the new one's,
entered here, and a golden file that keeps the old bytes. Next: `codec`, which applies the chain before typed decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(type name without version, old version) -> the step to the next version."""


def upcast(
    name: str, version: int, newest: int, data: dict[str, Any], steps: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> dict[str, Any]:
    """`data` of `version` as data of `newest`. KeyError names a step that is missing."""
    for step in range(version, newest):
        data = steps[name, step](data)
    return data
