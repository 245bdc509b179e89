"""Finds the parts of the log that should be in the archive and are not, from the names of its files.

Input: the archive; the position up to which the log was archived. Output: `Gap`s. Next: the keeper's patrol, and
`history.archive_files.report`.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import NamedTuple

from chronolet.kernel.log.archive import Archive, ArchiveDamaged, Part
from chronolet_schemas.envelope import START, Entry, Position


class Gap(NamedTuple):
    """Missing entries: those after `after` and before `before` or, if `before` is None, up to and including `upto`."""

    after: Position
    upto: Position
    """The position of the last missing entry if `before` is None, else the same as `before`."""
    before: Position | None

    def __str__(self) -> str:
        end = f"before {self.before}" if self.before else f"up to {self.upto}"
        return f"of the entries after {self.after} {end}"


def gaps(archive: Archive, archived: Position) -> Iterator[Gap]:
    """Yield the gaps, oldest first. A part whose loss was accepted is not a gap.

    Raises OSError. No gap is reported next to a file whose first or last entry must be read but is damaged: the damage
    is reported when that file is read.
    """
    reached, former = START, None
    for part in sorted((*archive.files(), *archive.accepted_losses()), key=lambda part: part.first):
        if part.first.n > reached.n + 1 and part.first > reached and not _foreign_edge(archive, former, part):
            yield Gap(reached, part.first, part.first)
        if part.last > reached:
            reached, former = part.last, part
    if archived > reached:
        yield Gap(reached, archived, None)


def _foreign_edge(archive: Archive, former: Part | None, part: Part) -> bool:
    """Whether the numbers of the last entry of `former` and the first of `part` prove nothing, because another program
    added one of these entries, or a file is damaged.
    """
    try:
        edges = [_first(archive, part)] + ([_last(archive, former)] if former else [])
    except ArchiveDamaged:
        return True
    return any(entry is not None and not entry.type for entry in edges)


def _first(archive: Archive, part: Part) -> Entry | None:
    return next(archive.entries_of(part.name), None) if _is_file(archive, part) else None


def _last(archive: Archive, part: Part) -> Entry | None:
    if not _is_file(archive, part):
        return None
    ends = collections.deque(archive.entries_of(part.name), maxlen=1)
    return ends[0] if ends else None


def _is_file(archive: Archive, part: Part) -> bool:
    return part in archive.files()
