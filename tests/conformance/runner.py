"""Runs vector files against the product's own deciders and helpers.

In: paths of vector files. Out: one line for each case that fails, last line `N passed, M failed`; exit status 1 if any
failed. A driver turns a case into calls of the product and answers with what differs; a kind that no driver has fails
by its name. No expectation is known here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.conformance.drivers import DRIVERS
from tests.conformance.outcome import Case

VECTORS = Path(__file__).parent / "vectors"


class Result(NamedTuple):
    """What became of one case; `problems` is empty if it passed."""

    subsystem: str
    kind: str
    name: str
    problems: Sequence[str]

    def __str__(self) -> str:
        return f"{self.subsystem}: {self.name} ({self.kind}): {'; '.join(self.problems)}"


def results(path: Path) -> Iterator[Result]:
    """Every case of a file."""
    vectors: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    subsystem = vectors["subsystem"]
    for case in vectors["cases"]:
        yield Result(subsystem, case["kind"], case["name"], problems(subsystem, case))


def problems(subsystem: str, case: Case) -> Sequence[str]:
    """What differs from the expectation of one case."""
    driver = DRIVERS.get((subsystem, case["kind"]))
    if driver is None:
        return [f"nothing implements {case['kind']} yet"]
    try:
        return list(driver(case))
    except NotImplementedError as missing:
        return [str(missing)]


def main(arguments: Sequence[str]) -> int:
    """Run the files named, all copies under `vectors` if none is."""
    paths = [Path(one) for one in arguments] or sorted(VECTORS.glob("*.json"))
    passed = failed = 0
    for path in paths:
        for result in results(path):
            if result.problems:
                failed += 1
                sys.stdout.write(f"{result}\n")
            else:
                passed += 1
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        sys.stderr.write(f"conformance: {type(error).__name__}: {error}\n")
        sys.exit(2)
