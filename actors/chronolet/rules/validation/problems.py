"""The basic checks used by validation. Pure.

Input: a path, in the notation of Kubernetes, and a value. Output: problems with that path. Next: the other modules in
this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """A validation error: its path, and what was found and expected."""

    path: str
    message: str


def name_problems(path: str, name: str, check: Callable[[str], str | None], what: str = "") -> Iterator[Problem]:
    """Report the problem that `check` finds with a name, if any; `what` is a prefix for the message."""
    problem = check(name)
    if problem is not None:
        yield Problem(path, f"{what}{problem}")


def required(path: str, value: str, what: str) -> Iterator[Problem]:
    """Check that a text is not empty; `what` describes the expected value."""
    if not value:
        yield Problem(path, f"missing, expected {what}")


def at_least(path: str, value: int, lowest: int) -> Iterator[Problem]:
    """Check that a number is not below a lower bound."""
    if value < lowest:
        yield Problem(path, f"{value} is below {lowest}")


def within(path: str, value: int, lowest: int, highest: int) -> Iterator[Problem]:
    """Check that a number is between two bounds, inclusive."""
    yield from at_least(path, value, lowest)
    if value > highest:
        yield Problem(path, f"{value} is above {highest}")


def repeated(path: str, field: str, values: Sequence[str]) -> Iterator[Problem]:
    """Report duplicate values of `field` in a list; empty values are ignored."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if value and first.setdefault(value, index) < index:
            yield Problem(f"{path}[{index}].{field}", f"{value!r} is already used by {path}[{first[value]}]")
