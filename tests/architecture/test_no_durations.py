"""Checks that no test depends on how long something takes: no assertion compares an elapsed time with an upper limit.

How long something takes depends on the machine and on what else is running on it. Tests count operations
(tests/support/counting), read from the log what happened, or wait with `hang_limit`; scripts/bench measures durations.
Benches are not checked, and neither are lower limits ("not before its time"), which do not fail on a slow machine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = {
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "thread_time",
    "time",
    "time_ns",
}
HANG_WORDS = ("deadline", "until", "hang", "HANG_SECONDS", "hang_limit")


def reads_clock(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in CLOCKS
        and isinstance(one.func.value, ast.Name)
        and one.func.value.id == "time"
        for one in ast.walk(node)
    )


def from_clock(function: ast.AST) -> set[str]:
    """Return the names to which an elapsed time is assigned: `took = time.monotonic() - began`."""
    return {
        target.id
        for one in ast.walk(function)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.BinOp) and reads_clock(one.value)
        for target in one.targets
        if isinstance(target, ast.Name) and isinstance(one.value.op, ast.Sub)
    }


def is_elapsed(node: ast.AST, names: set[str]) -> bool:
    """Return whether the expression contains a subtraction that reads the clock, or one of `names`, which were assigned
    the results of such subtractions.
    """
    return any(
        (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) and reads_clock(one))
        or (isinstance(one, ast.Name) and one.id in names)
        for one in ast.walk(node)
    )


def refused(source: str) -> Iterator[int]:
    """Yield the line numbers of assertions that an elapsed time is below a limit; assertions that contain one of
    HANG_WORDS are skipped.
    """
    tree = ast.parse(source)
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    for function in functions:
        names = from_clock(function)
        for one in ast.walk(function):
            if isinstance(one, ast.Assert) and not any(word in ast.unparse(one) for word in HANG_WORDS):
                yield from (one.lineno for compare in ast.walk(one.test) if _limits(compare, names))


def _limits(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    return any(
        (isinstance(operator, ast.Lt | ast.LtE) and is_elapsed(left, names))
        or (isinstance(operator, ast.Gt | ast.GtE) and is_elapsed(right, names))
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
    )


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("assert time.monotonic() - began < 5", [3]),
        ("assert 0.5 < time.monotonic() - began < 15", [3]),
        ("assert 5 >= time.perf_counter() - began, 'slow'", [3]),
        ("took = time.thread_time() - began\n    assert took <= 0.005", [4]),
        ("assert time.monotonic() - began >= 0.5", []),
        ("deadline = time.monotonic() + HANG_SECONDS\n    assert time.monotonic() < deadline", []),
        ("assert began < line['seen'] < time.time()", []),
        ("assert len(list(range(3))) < 5", []),
    ],
)
def test_what_is_refused(line: str, lines: list[int]) -> None:
    assert list(refused(f"def test_it() -> None:\n    began = time.monotonic()\n    {line}\n")) == lines


def test_no_assertion_limits_an_elapsed_time() -> None:
    files = [path for path in sorted(TESTS.rglob("*.py")) if path.relative_to(TESTS).parts[0] != "bench"]
    assert len(files) > 300
    found = [f"{path.relative_to(TESTS)}:{line}" for path in files for line in refused(path.read_text())]
    assert not found, f"decided by a duration: {found}; count operations, or wait with tests.support.scratch.hang_limit"
