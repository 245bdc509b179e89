"""When the log is archived and trimmed, and when a shard stops holding back trimming. Pure. Next: `decider`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from chronolet_schemas.envelope import START, Position

_WEEK = 7 * 24 * 3600 * 1000


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds and delays of the keeper. Times in milliseconds."""

    chunk_entries: int = 20_000
    """Entries that make an archive file worth writing. As many stay in the stream, readable with redis-cli."""
    oldest: int = _WEEK
    """Maximum age of unarchived entries: beyond it, fewer than `chunk_entries` are archived too."""
    let_go: int = _WEEK
    """How long a shard without an owner holds back trimming."""
    first_retry: int = 60_000
    longest_retry: int = 3_600_000

    @property
    def trim_entries(self) -> int:
        """Minimum entries per trim. Each trim costs two events, and cursors and snapshots advance in small steps."""
        return max(self.chunk_entries // 4, 1)

    def retry_at(self, failures: int, now: int) -> int:
        """When to retry a job after this many consecutive failures, the current one included."""
        pause = self.first_retry << min(failures - 1, 16)
        return now + min(pause, self.longest_retry)

    def is_worth_archiving(self, *, last: Position, archived: Position, begun_at: int, now: int) -> bool:
        """Whether enough entries, or old enough ones, follow `archived`. `begun_at`: when the log began."""
        waiting = last.n - archived.n
        oldest_at = archived.milliseconds or begun_at
        return waiting >= self.chunk_entries or (waiting > 0 and now - oldest_at > self.oldest)


def trim_limit(goal: Position, needed: Iterable[Position]) -> Position:
    """How far the log may be trimmed: up to `goal`, but not past what a shard still needs.

    `needed`: per shard, the position up to which it needs nothing. Without any, nothing is trimmed.
    """
    return min(goal, min(needed, default=START))
