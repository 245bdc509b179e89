"""Effects of the keeper. Input: none. Output: Effect Structs for `effects`."""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class MeasureLog(Effect, frozen=True, kw_only=True):
    """Standing: measure the log's size, cursors and snapshots periodically; sends LogMeasured."""


class GuardDisk(Effect, frozen=True, kw_only=True):
    """Standing: forward what the disk guard of the agent's own Redis did; sends ReserveReleased, ReserveRestored."""


class WriteArchive(Effect, frozen=True, kw_only=True):
    """Write the entries after `after` up to `upto` to an archive file. Result: ArchiveDone or JobRefused."""

    after: str
    upto: str


class TrimLog(Effect, frozen=True, kw_only=True):
    """Remove archived entries up to `upto`. Result: TrimDone or JobRefused."""

    upto: str
    let_go: tuple[str, ...] = ()
