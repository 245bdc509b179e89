"""When the log is archived and trimmed, and when a shard is given up. Pure; called by `decider`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from chronolet_schemas.envelope import START, Position

_WEEK = 7 * 24 * 3600 * 1000


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The keeper's numbers. Times in milliseconds."""

    chunk_entries: int = 20_000
    """An archive file is worth writing for so many entries. As many stay in the stream, for people with redis-cli."""
    oldest: int = _WEEK
    """Fewer entries are archived once the oldest of them is this old."""
    let_go: int = _WEEK
    """A shard without owner for so long holds back trimming no longer (DESIGN 3.6)."""
    first_retry: int = 60_000
    longest_retry: int = 3_600_000

    @property
    def trim_entries(self) -> int:
        """Trimming is worth two events for so many entries: cursors and snapshots come along bit by bit."""
        return max(self.chunk_entries // 4, 1)

    def retry_at(self, failures: int, now: int) -> int:
        """When a job is tried again that has failed so often in a row, this time included."""
        pause = self.first_retry << min(failures - 1, 16)
        return now + min(pause, self.longest_retry)

    def is_worth_archiving(self, *, last: Position, archived: Position, begun_at: int, now: int) -> bool:
        """Whether what came after `archived` is long or old enough. `begun_at`: when the log began."""
        waiting = last.n - archived.n
        oldest_at = archived.milliseconds or begun_at
        return waiting >= self.chunk_entries or (waiting > 0 and now - oldest_at > self.oldest)


def trim_limit(goal: Position, needed: Iterable[Position]) -> Position:
    """How far the log may go: up to `goal`, but not past what anybody still needs. `needed`: a position for each shard,
    up to which it needs nothing; without any there is nobody to ask, and nothing goes.
    """
    return min(goal, min(needed, default=START))
