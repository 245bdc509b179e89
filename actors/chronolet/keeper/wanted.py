"""Effects of the keeper. Input: none. Output: Effect Structs for `effects`."""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class MeasureLog(Effect, frozen=True, kw_only=True):
    """Standing: periodically measure the log's extent and the position from which each shard still needs it; sends
    LogMeasured.
    """

    reported: str = ""
    """What was last reported about existing archive files when the effect began."""


class GuardDisk(Effect, frozen=True, kw_only=True):
    """Standing: forward reports of the disk guard of the agent's Redis; sends ReserveReleased, ReserveRestored."""


class IndexArchive(Effect, frozen=True, kw_only=True):
    """Standing: write the indexes and checkpoints that the archive lacks, in the background; sends nothing."""


class ReportProblem(Effect, frozen=True, kw_only=True):
    """Standing: show the archive's problem to the rest of the process."""

    problem: str


class WriteArchive(Effect, frozen=True, kw_only=True):
    """Write the entries after `after` up to `upto` to an archive file. Result: ArchiveDone or JobRefused."""

    after: str
    upto: str


class ArchiveProbes(Effect, frozen=True, kw_only=True):
    """Write the segments up to `upto` to an archive file, and remove them from their stream. Result: ProbeArchiveDone
    or JobRefused.
    """

    after: str
    upto: str


class DeleteProbes(Effect, frozen=True, kw_only=True):
    """Delete archive files of segments. Result: ProbeDeletionDone or JobRefused."""

    files: tuple[str, ...]


class TrimLog(Effect, frozen=True, kw_only=True):
    """Remove archived entries up to `upto`. Result: TrimDone or JobRefused."""

    upto: str
    let_go: tuple[str, ...] = ()
