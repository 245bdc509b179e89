"""Comparing what came out with what a case expects.

A key that the expectation lacks is not compared. Lists are in order; a driver makes sets of those that are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Case = dict[str, Any]


def differences(expected: Mapping[str, Any], found: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """One line for each expected key that came out otherwise, or not at all."""
    for key, value in expected.items():
        if key not in found:
            yield f"{where}{key}: expected {value!r}, nothing came out"
        elif found[key] != value:
            yield f"{where}{key}: expected {value!r}, found {found[key]!r}"


def as_sets(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The same, with the lists under these keys sorted, for their order means nothing."""
    return {key: sorted(value) if key in keys else value for key, value in values.items()}
