"""Runs vector files against the product's own deciders and helpers.

Input: paths of vector files. Output: one line for each case that fails, and a last line `N passed, M failed`; exit
status 1 if any case failed, 2 if a file is not a vector file. A driver turns a case into calls to the product and
returns what differs. A case that has no driver, or whose driver raises, counts as one failure with the case's name; the
other cases still run. The runner itself contains no expected values.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.conformance.drivers import DRIVERS
from tests.conformance.outcome import Case

VECTORS = Path(__file__).parent / "vectors"


class NotVectors(Exception):  # noqa: N818 - the name describes the file
    """Raised for a file without cases that can be run."""


class _File(msgspec.Struct):
    """A vector file; any other fields are notes."""

    subsystem: str
    cases: list[dict[str, Any]]


class Result(NamedTuple):
    """The result of one case; `problems` is empty if it passed."""

    subsystem: str
    kind: str
    name: str
    problems: Sequence[str]

    def __str__(self) -> str:
        return f"{self.subsystem}: {self.name} ({self.kind}): {'; '.join(self.problems)}"


def results(path: Path) -> Iterator[Result]:
    """Run every case of a file and yield its result. Raises NotVectors for a file without cases."""
    try:
        vectors = msgspec.json.decode(path.read_bytes(), type=_File)
    except (OSError, msgspec.DecodeError) as error:
        raise NotVectors(f"{path}: {error}") from error
    if not vectors.cases:
        raise NotVectors(f"{path}: found no case, expected at least one")
    for case in vectors.cases:
        yield Result(
            vectors.subsystem,
            str(case.get("kind", "no kind")),
            str(case.get("name", "no name")),
            problems(vectors.subsystem, case),
        )


def problems(subsystem: str, case: Case) -> Sequence[str]:
    """Return the differences from the expectation of one case, or the reason why the case could not be run."""
    kind = case.get("kind")
    driver = DRIVERS.get((subsystem, kind)) if isinstance(kind, str) else None
    if driver is None:
        return [f"nothing implements {kind} yet"]
    try:
        return list(driver(case))
    except NotImplementedError as missing:
        return [str(missing)]
    except Exception as error:  # noqa: BLE001 - an error in one case must not end the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        return [f"could not be run: {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"]


def main(arguments: Sequence[str]) -> int:
    """Run the named vector files, or all those in the folder `vectors` if none is named; return the exit status."""
    passed = failed = 0
    unreadable: list[NotVectors] = []
    for path in [Path(one) for one in arguments] or sorted(VECTORS.glob("*.json")):
        try:
            for result in results(path):
                if result.problems:
                    failed += 1
                    sys.stdout.write(f"{result}\n")
                else:
                    passed += 1
        except NotVectors as error:
            unreadable.append(error)
            sys.stderr.write(f"conformance: {error}\n")
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 2 if unreadable else int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
