"""Compares a result with the expectation of a case.

Only keys of the expectation are compared. Lists are ordered; a driver sorts a list whose order has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Case = dict[str, Any]


def differences(expected: Mapping[str, Any], found: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield one line for each expected key whose value differs or is missing."""
    for key, value in expected.items():
        if key not in found:
            yield f"{where}{key}: expected {value!r}, nothing came out"
        elif found[key] != value:
            yield f"{where}{key}: expected {value!r}, found {found[key]!r}"


def as_sets(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the values with the lists under these keys sorted, because their order has no meaning."""
    return {key: sorted(value) if key in keys else value for key, value in values.items()}
