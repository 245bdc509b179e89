"""Upkeep of the log itself: archiving and trimming."""

from __future__ import annotations

from chronolet_schemas.envelope import Event
from chronolet_schemas.registry import registered


@registered
class ArchiveRequested(Event, frozen=True, kw_only=True):
    """The entries after `after` up to and including `upto` (positions) are to be archived."""

    after: str
    upto: str


@registered
class ArchiveWritten(Event, frozen=True, kw_only=True):
    """An archive file is complete and on disk; `first` and `last` are positions."""

    file: str
    first: str
    last: str
    events: int
    size_bytes: int
    sha256: str


@registered
class ArchiveFailed(Event, frozen=True, kw_only=True):
    """An archive file could not be written; writing is retried at `retry_at` (milliseconds)."""

    error: str
    retry_at: int


@registered
class TrimRequested(Event, frozen=True, kw_only=True):
    """Entries up to and including `upto` may be removed from the stream: they are archived, and no cursor or snapshot
    needs them.
    """

    upto: str


@registered
class LogTrimmed(Event, frozen=True, kw_only=True):
    """The stream now begins after `upto`; `removed` entries were removed."""

    upto: str
    removed: int


@registered
class TrimFailed(Event, frozen=True, kw_only=True):
    """The stream could not be trimmed; trimming is retried at `retry_at` (milliseconds)."""

    error: str
    retry_at: int


@registered
class ShardLetGo(Event, frozen=True, kw_only=True):
    """A shard without an owner for seven days no longer holds back trimming; it will recover from the archive."""

    shard: str
    unowned_since: int


@registered
class ShardHeldAgain(Event, frozen=True, kw_only=True):
    """A shard named in an earlier ShardLetGo has an owner again, and holds back trimming like any other."""

    shard: str


@registered
class ProbeArchiveRequested(Event, frozen=True, kw_only=True):
    """The segments in the stream `probe_segments` up to and including `upto` are to be archived, then removed from it.

    `after` is where the archive file before ended. Both are ids of that stream.
    """

    after: str
    upto: str


@registered
class ProbesArchived(Event, frozen=True, kw_only=True):
    """An archive file of segments is complete and on disk; the stream does not have its segments any more.

    `skipped`: how many segments the file lacks, as they were damaged or of a later format. The stream does not have
    them any more, either.
    """

    file: str
    after: str
    upto: str
    outcomes: int
    size_bytes: int
    sha256: str
    skipped: int = 0


@registered
class ProbeDeletionRequested(Event, frozen=True, kw_only=True):
    """These archive files of segments, the oldest, are to be deleted: they are older than the setting keeps. The last
    one ends at `upto`.
    """

    files: tuple[str, ...]
    upto: str


@registered
class ProbesDeleted(Event, frozen=True, kw_only=True):
    """Archive files of segments are deleted. The last one ended at `upto`."""

    files: tuple[str, ...]
    upto: str


@registered
class ProbeArchiveFailed(Event, frozen=True, kw_only=True):
    """Segments could not be archived; this is retried at `retry_at` (milliseconds)."""

    error: str
    retry_at: int


@registered
class ProbeDeletionFailed(Event, frozen=True, kw_only=True):
    """Archive files of segments could not be deleted; this is retried at `retry_at` (milliseconds)."""

    error: str
    retry_at: int
