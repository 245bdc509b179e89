"""The names of archive files of segments, `AFTER..LAST.probes`. Pure.

Input: a file's name. Output: the part of the stream that it has; the parts that no file has. Next: `file_format`;
`adapters.probes.results.segment_files`; the keeper's decider.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

from chronolet_schemas.envelope import Position

SUFFIX = ".probes"


class FilePart(NamedTuple):
    """A file, and the part of the stream that it has according to its name: after `after` and up to `last`."""

    after: Position
    last: Position
    name: str


def part_of(name: str) -> FilePart | None:
    """Return the part that a file has according to its name; None if it is no file of segments."""
    with contextlib.suppress(ValueError):
        if name.endswith(SUFFIX):
            after, last = name.removesuffix(SUFFIX).split("..")
            return FilePart(Position.parse(after), Position.parse(last), name)
    return None


def uncovered(parts: Iterable[FilePart], deleted: Position, archived: Position) -> list[tuple[Position, Position]]:
    """Return the parts of the stream, as AFTER and LAST, from the id `deleted` to `archived`, that no file has."""
    found, reached = [], deleted
    for part in sorted(parts):
        if part.after > reached:
            found.append((reached, part.after))
        reached = max(reached, part.last)
    return [*found, (reached, archived)] if archived > reached else found
