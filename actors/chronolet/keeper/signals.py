"""Results of the keeper's effects. Positions are text."""

from __future__ import annotations

from chronolet_schemas.envelope import Signal


class LogMeasured(Signal, frozen=True, kw_only=True):
    """The current extent of the log."""

    last: str
    archived: str
    begun_at: int
    """When the oldest entry in the stream was written, in milliseconds."""
    needed: dict[str, str]
    """For each shard that ever had an owner: the position up to which neither cursor nor snapshot needs the log."""
    unowned: dict[str, int]
    """The shards without a live owner, and since when each has had none (milliseconds)."""
    incomplete: str = ""
    """What is wrong with existing archive files; empty if nothing is known to be."""


class ArchiveDone(Signal, frozen=True, kw_only=True):
    """The archive file is complete, on disk, and recorded in the store."""

    subject: str
    intent: str
    file: str
    first: str
    last: str
    events: int
    size_bytes: int
    sha256: str


class TrimDone(Signal, frozen=True, kw_only=True):
    """The stream was trimmed. Redis trims whole nodes of a stream, so `upto` may precede the requested position."""

    subject: str
    intent: str
    upto: str
    removed: int


class ProbesMeasured(Signal, frozen=True, kw_only=True):
    """The segments that are not archived yet, and the oldest archive files of segments."""

    begun_at: int = 0
    """When the oldest segment in the stream was written, in milliseconds; 0 if there is none."""
    upto: str = ""
    """The id of the last segment that the next archive file should have."""
    segments: int = 0
    """How many segments there are up to `upto`."""
    is_full: bool = False
    """Whether as many outcomes as an archive file should have at most are waiting."""
    files: tuple[str, ...] = ()
    """The names of the oldest archive files, oldest first."""


class ProbeArchiveDone(Signal, frozen=True, kw_only=True):
    """The archive file of segments is complete and on disk, and its segments are removed from the stream.

    `skipped`: how many segments of the stream are not in the file, as they could not be decoded.
    """

    subject: str
    intent: str
    file: str
    outcomes: int
    size_bytes: int
    sha256: str
    skipped: int = 0


class ProbeDeletionDone(Signal, frozen=True, kw_only=True):
    """The archive files of segments are deleted."""

    subject: str
    intent: str


class JobRefused(Signal, frozen=True, kw_only=True):
    """The job failed; nothing was lost."""

    subject: str
    intent: str
    error: str


class ReserveReleased(Signal, frozen=True, kw_only=True):
    """The disk reserve's file was deleted to free space, or was missing when the agent started."""

    freed_bytes: int
    error: str


class ReserveRestored(Signal, frozen=True, kw_only=True):
    """The file of the disk reserve has its full size again."""

    size_bytes: int
