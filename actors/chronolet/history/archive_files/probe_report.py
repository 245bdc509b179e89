"""Verifies the archive files of probe outcomes: reads every file, and looks for missing ones.

Input: the files; how far they were archived and deleted, as the log says. Output: `ProbeReport`. Next: `cli.archive`.
A file that is damaged or missing cannot be repaired, as Redis no longer has its segments; `accept` records the loss.
"""

from __future__ import annotations

from msgspec import Struct

from chronolet.kernel.log.archive import ArchiveDamaged
from chronolet.ports.pods.segment_files import SegmentFiles
from chronolet.rules.probes.segments.file_names import FilePart
from chronolet_schemas.envelope import START, Position


class Extent(Struct, frozen=True):
    """The ids of the stream of segments up to which files were deleted, and up to which segments were archived."""

    deleted: Position = START
    archived: Position = START


class ProbeFileReport(Struct, frozen=True):
    """What was found in one file. `problem`: the damage, or why it could not be read; empty if it is sound."""

    part: FilePart
    outcomes: int
    problem: str
    unreachable: bool = False
    """Whether the storage did not return the file, which proves nothing about its content."""


class ProbeReport(Struct, frozen=True):
    """The state of the files. `missing`: parts of the stream, as AFTER and LAST, whose files should exist.

    `losses`: the parts whose loss was accepted.
    """

    files: tuple[ProbeFileReport, ...]
    missing: tuple[tuple[Position, Position], ...]
    losses: tuple[FilePart, ...]

    @property
    def good(self) -> bool:
        """Whether every outcome that was archived and not deleted can be read, apart from accepted losses."""
        return not self.missing and not any(file.problem for file in self.files)


def verify_probes(files: SegmentFiles, extent: Extent | None) -> ProbeReport:
    """Verify the files. Raises OSError if they cannot be listed.

    `extent`: None if the log does not tell, as entries are missing; then only gaps between files are found.
    """
    parts = files.parts()
    known = extent or Extent(deleted=min((part.after for part in parts), default=START))
    missing = tuple(files.missing(known.deleted, known.archived))
    return ProbeReport(tuple(_inspected(files, part) for part in parts), missing, tuple(files.accepted_losses()))


def accept(files: SegmentFiles, report: ProbeReport) -> None:
    """Record the loss of damaged and missing files, so that it is no longer reported. A damaged file is kept as
    `NAME.damaged`; one that the storage does not return stays as it is. Raises OSError.
    """
    for file in report.files:
        if file.problem and not file.unreachable:
            files.storage.set_aside(file.part.name)
            files.accept_loss(file.part.after, file.part.last)
    for after, last in report.missing:
        files.accept_loss(after, last)


def _inspected(files: SegmentFiles, part: FilePart) -> ProbeFileReport:
    outcomes = 0
    try:
        for segment in files.segments(part.name):
            outcomes += segment.outcomes
    except (ArchiveDamaged, IsADirectoryError) as error:
        return ProbeFileReport(part, outcomes, str(error).removeprefix(f"{files.storage.place(part.name)}: "))
    except OSError as error:
        return ProbeFileReport(part, outcomes, f"not returned by the storage: {error}", unreachable=True)
    return ProbeFileReport(part, outcomes, "")
