"""The small checks that validation is made of. Pure.

Input: a path and a value. Output: problems with that path, in Kubernetes' manner of naming paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """What is wrong at a path: what was found and what was expected."""

    path: str
    message: str


def name_problems(path: str, name: str, check: Callable[[str], str | None], what: str = "") -> Iterator[Problem]:
    """The problem that `check` sees in a name, if any."""
    problem = check(name)
    if problem is not None:
        yield Problem(path, f"{what}{problem}")


def required(path: str, value: str, what: str) -> Iterator[Problem]:
    """A text that must not be empty."""
    if not value:
        yield Problem(path, f"missing, expected {what}")


def at_least(path: str, value: int, lowest: int) -> Iterator[Problem]:
    """A number with a lower bound."""
    if value < lowest:
        yield Problem(path, f"{value} is below {lowest}")


def within(path: str, value: int, lowest: int, highest: int) -> Iterator[Problem]:
    """A number with both bounds."""
    yield from at_least(path, value, lowest)
    if value > highest:
        yield Problem(path, f"{value} is above {highest}")


def repeated(path: str, field: str, values: Sequence[str]) -> Iterator[Problem]:
    """Values of a field in a list that stand there twice; empty ones are somebody else's problem."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if value and first.setdefault(value, index) < index:
            yield Problem(f"{path}[{index}].{field}", f"{value!r} is already used by {path}[{first[value]}]")
