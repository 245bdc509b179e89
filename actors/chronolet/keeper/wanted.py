"""What the keeper wants to have running. Comes in: nothing. Goes out: Effect Structs for `effects`."""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class MeasureLog(Effect, frozen=True, kw_only=True):
    """Standing: look at the log's size, cursors and snapshots now and then; sends LogMeasured."""


class GuardDisk(Effect, frozen=True, kw_only=True):
    """Standing: hand on what the guard of the agent's own Redis did; sends BallastGone, BallastBack."""


class WriteArchive(Effect, frozen=True, kw_only=True):
    """Write the entries after `after` up to `upto` to an archive file. Answers: ArchiveDone, JobRefused."""

    after: str
    upto: str


class TrimLog(Effect, frozen=True, kw_only=True):
    """Remove entries up to `upto`, which are archived. Answers: TrimDone, JobRefused."""

    upto: str
    let_go: tuple[str, ...] = ()
