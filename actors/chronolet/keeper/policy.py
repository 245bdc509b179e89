"""Rules for when to archive and trim the log and probe outcomes, and when a shard stops holding back trimming. Pure.

Next: `decider`, `probe_files`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from chronolet_schemas.envelope import START, Position

_HOUR = 3600 * 1000
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The keeper's thresholds and delays. Times are in milliseconds."""

    chunk_entries: int = 20_000
    """The number of unarchived entries that makes an archive file worth writing. The entries of the last archive file
    stay in the stream, too, where redis-cli can read them.
    """
    oldest: int = _WEEK
    """The age beyond which unarchived entries are archived even if there are fewer than `chunk_entries`."""
    let_go: int = _WEEK
    """How long a shard without an owner holds back trimming."""
    probes_chunk: int = 240
    """The number of segments that makes an archive file of segments worth writing: four processes write them within an
    hour.
    """
    probes_oldest: int = _HOUR
    """The age of the oldest segment in the stream beyond which segments are archived, even if there are fewer."""
    probes_max_age: int = 30 * _DAY
    """How long archive files of segments are kept, by the time of the newest archived segment; 0: permanently."""
    probes_most_deleted: int = 4
    """The maximum number of old archive files of segments that are deleted after a new one was written. It bounds what
    a clock that is ahead deletes before it is noticed.
    """
    first_retry: int = 60_000
    longest_retry: int = 600_000
    """Also how long it takes at most until a repair of the archive is noticed."""
    node: str = ""
    """The node's name, for KubeEvents."""

    @property
    def trim_entries(self) -> int:
        """The minimum number of entries per trim.

        Each trim costs two events. Cursors and snapshots advance in small steps, so without a minimum there would be
        many trims.
        """
        return max(self.chunk_entries // 4, 1)

    def retry_at(self, failures: int, now: int) -> int:
        """Return when to retry a job after this many consecutive failures, including the current one."""
        pause = self.first_retry << min(failures - 1, 16)
        return now + min(pause, self.longest_retry)

    def is_worth_archiving(self, *, last: Position, archived: Position, begun_at: int, now: int) -> bool:
        """Return whether enough entries, or old enough ones, follow `archived`. `begun_at`: when the log began."""
        waiting = last.n - archived.n
        oldest_at = archived.milliseconds or begun_at
        return waiting >= self.chunk_entries or (waiting > 0 and now - oldest_at > self.oldest)


def trim_limit(goal: Position, needed: Iterable[Position]) -> Position:
    """Return the position up to which the log may be trimmed: `goal`, or the lowest position in `needed` if that is
    earlier.

    `needed`: for each shard, the position up to which it no longer needs the log. If empty, nothing is trimmed.
    """
    return min(goal, min(needed, default=START))
