"""Converts data of an older version of a type to the next version.

A published event never changes. A new version comes with a function that converts the plain map of the old version to
that of the new one, registered here, and with a golden file that preserves the old bytes. Next: `codec`, which applies
the chain before typed decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""Maps (type name without version, old version) to the function that converts to the next version."""


def upcast(
    name: str, version: int, newest: int, data: dict[str, Any], steps: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> dict[str, Any]:
    """Convert `data` from `version` to `newest`. Raises KeyError for a missing step."""
    for step in range(version, newest):
        data = steps[name, step](data)
    return data
