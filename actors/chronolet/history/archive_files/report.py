"""Verifies an archive: reads every file, looks for gaps, and compares the files with what the stream still holds.

Input: the archive and the store. A keeper may be archiving and trimming at the same time: files that it writes after
the verification has begun are not part of the report. Output: `Report`. Next: `repair`, `cli.archive`.
"""

from __future__ import annotations

from msgspec import Struct

from chronolet.kernel.log.archive import Archive, ArchiveDamaged, Gapless, Part
from chronolet.kernel.log.gaps import Gap, gaps
from chronolet.kernel.storage.store import Store
from chronolet_schemas.envelope import Entry, Position


class FileReport(Struct, frozen=True):
    """What was found in one file."""

    part: Part
    entries: int
    """How many entries can be read: all, or those before the damage."""
    problem: str
    """The first damage, how the file differs from the stream, or why it could not be read; empty if it is sound."""
    unreachable: bool = False
    """Whether the storage did not return the file, which proves nothing about its content."""


class Report(Struct, frozen=True):
    """The state of an archive."""

    place: str
    archived: Position
    trimmed: Position
    files: tuple[FileReport, ...]
    gaps: tuple[Gap, ...]
    losses: tuple[Part, ...]
    """Parts of the log whose loss was accepted."""

    @property
    def good(self) -> bool:
        """Whether every archived entry can be read, apart from accepted losses."""
        return not self.gaps and not any(file.problem for file in self.files)


def verify(archive: Archive, store: Store) -> Report:
    """Verify the archive. Raises OSError if its files cannot be listed, and the errors of the store."""
    # In this order: a file is written before `archived` moves past it, and entries are trimmed only after that.
    archived, trimmed = store.archived()
    files = archive.files()
    return Report(
        archive.storage.place(),
        archived,
        trimmed,
        tuple(_inspected(archive, store, part, trimmed) for part in files),
        tuple(gaps(archive, archived)),
        tuple(archive.accepted_losses()),
    )


def just_before(position: Position) -> Position:
    """Return a position before this one, but not before the preceding entry. Neither is certain if one of the two
    entries is foreign, because the number in its position is arbitrary.
    """
    return Position(position.milliseconds, max(position.n - 1, 0))


def _inspected(archive: Archive, store: Store, part: Part, trimmed: Position) -> FileReport:
    count, checked = 0, _Checked(part, archive.storage.place(part.name))
    streamed = store.scan(max(trimmed, just_before(part.first)), part.last) if part.last > trimmed else iter(())
    expected = next(streamed, None)
    try:
        for entry in archive.entries_of(part.name):
            checked.check(entry)
            if expected is not None and entry.position >= expected.position:
                if entry != expected:
                    raise ArchiveDamaged(f"differs from the stream at {expected.position}")  # noqa: TRY301
                expected = next(streamed, None)
            count += 1
        if expected is not None:
            raise ArchiveDamaged(f"lacks {expected.position}, which the stream holds")  # noqa: TRY301
    except (ArchiveDamaged, IsADirectoryError) as error:
        return FileReport(part, count, str(error).removeprefix(f"{archive.storage.place(part.name)}: "))
    except OSError as error:
        return FileReport(part, count, f"not returned by the storage: {error}", unreachable=True)
    return FileReport(part, count, "")


class _Checked:
    """Checks that a file begins as its name says, and that the numbers of its entries have no gap."""

    def __init__(self, part: Part, where: str) -> None:
        self._gapless = Gapless(just_before(part.first))
        self._first: Position | None = part.first
        self._where = where

    def check(self, entry: Entry) -> None:
        if self._first is not None and entry.position != self._first:
            raise ArchiveDamaged(f"begins with {entry.position}, expected {self._first} as in its name")
        self._first = None
        self._gapless.check(entry, self._where)
