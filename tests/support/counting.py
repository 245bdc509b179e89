"""Counts the calls that a function makes: a cost that is the same on every machine, whatever else is running there.

Input: a function without arguments. Output: its result, and the calls that this thread made during it. scripts/bench
measures durations.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Counted(NamedTuple, Generic[T]):
    """The result of a function, and its calls. `python`: number of calls of Python functions; `system`: number of calls
    of C functions in the modules posix, io and socket, by name.
    """

    answer: T
    python: int
    system: Counter[str]


def counted(work: Callable[[], T]) -> Counted[T]:
    """Call `work` and count the calls made, except those of threads that it starts."""
    python, system = [0], Counter[str]()

    def profile(_: FrameType, event: str, called: Any) -> None:
        if event == "call":
            python[0] += 1
        elif event == "c_call" and getattr(called, "__module__", None) in ("posix", "io", "_io", "_socket"):
            system[called.__name__] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        answer = work()
    finally:
        sys.setprofile(before)
    return Counted(answer, python[0], system)
