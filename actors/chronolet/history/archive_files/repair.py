"""Repairs an archive: rewrites damaged and missing files, as far as the stream still holds their entries.

Input: the archive, the store, a `Report`. Output: `Outcome`s, one for each damaged file and each gap. A keeper may be
running: it never trims entries that the archive does not return unchanged, so the entries that a repair needs stay in
the stream until it has written them. Next: `cli.archive`, which verifies the result.

A damaged file is renamed to `<name>.damaged` just before its replacement is written, and is never deleted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msgspec import Struct

from chronolet.history.archive_files.report import FileReport, Report, just_before
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.log.gaps import Gap
from chronolet.kernel.storage.store import Store
from chronolet_schemas.envelope import Entry, Position

FILE_ENTRIES = 20_000


class Range(Struct, frozen=True):
    """The entries after `after`, up to and including `upto`."""

    after: Position
    upto: Position

    def __str__(self) -> str:
        return f"the entries after {self.after} up to {self.upto}"


class Outcome(Struct, frozen=True):
    """What became of one damaged file or gap."""

    what: str
    written: tuple[str, ...] = ()
    """Names of the files that were written."""
    lost: Range | None = None
    """The entries that could not be repaired, because the stream no longer holds them."""
    accepted: bool = False
    """Whether the loss was recorded, so that it no longer counts as damage."""
    error: str = ""
    """Why the repair failed, apart from `lost`; empty if it did not."""


class Repair:
    """One repair of an archive. `accept_loss`: record what cannot be repaired as lost."""

    def __init__(self, archive: Archive, store: Store, *, accept_loss: bool = False) -> None:
        self._archive = archive
        self._store = store
        self._accept_loss = accept_loss

    def run(self, report: Report) -> Iterator[Outcome]:
        """Repair the damaged files and the gaps in `report`; yield each outcome as soon as it is known."""
        for file in report.files:
            if file.problem:
                yield self._file(file, report.trimmed)
        for gap in report.gaps:
            yield self._gap(gap, report.trimmed)

    def _file(self, file: FileReport, trimmed: Position) -> Outcome:
        if file.unreachable:
            return Outcome(file.part.name, error=f"left as it is: {file.problem}")
        wanted = Range(just_before(file.part.first), file.part.last)
        return self._restored(file.part.name, wanted, trimmed, damaged=file.part.name)

    def _gap(self, gap: Gap, trimmed: Position) -> Outcome:
        upto = gap.upto if gap.before is None else just_before(gap.before)
        return self._restored(f"missing files {gap}", Range(gap.after, upto), trimmed)

    def _restored(self, what: str, wanted: Range, trimmed: Position, damaged: str = "") -> Outcome:
        """Write the entries of the range `wanted` that the stream still holds. If it holds none of them, the file
        `damaged` stays as it is, because some of its entries may be readable, unless the loss is accepted.
        """
        lost = Range(wanted.after, min(trimmed, wanted.upto)) if trimmed > wanted.after else None
        written: list[str] = []
        try:
            for part in _files(self._store.scan(max(wanted.after, trimmed), wanted.upto)):
                written.append(self._write(part, damaged))
                damaged = ""
            if lost is not None and self._accept_loss:
                self._accept(lost, damaged)
        except (ArchiveDamaged, OSError) as error:
            return Outcome(what, tuple(written), lost, error=str(error))
        if lost is None and not written:
            return Outcome(what, error="the stream has none of these entries, although they were not trimmed")
        return Outcome(what, tuple(written), lost, accepted=lost is not None and self._accept_loss)

    def _write(self, part: list[Entry], damaged: str) -> str:
        if damaged:
            self._archive.storage.set_aside(damaged)
        return self._archive.write(part, just_before(part[0].position)).name

    def _accept(self, lost: Range, damaged: str) -> None:
        if damaged:
            self._archive.storage.set_aside(damaged)
        first = Position(lost.after.milliseconds, lost.after.n + 1)
        self._archive.accept_loss(first, lost.upto)


def _files(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries in lists of at most `FILE_ENTRIES`, one list for each archive file."""
    while part := list(itertools.islice(entries, FILE_ENTRIES)):
        yield part
