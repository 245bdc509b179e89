"""When the log is long or old enough to be archived, and when a shard is given up. Pure; called by `decider`."""

from __future__ import annotations

from chronolet_schemas.envelope import Position

CHUNK_ENTRIES = 20_000
"""An archive file is worth writing for so many entries. As many stay in the stream, for people with redis-cli."""
OLDEST_MILLISECONDS = 7 * 24 * 3600 * 1000
"""Fewer entries are archived once the oldest of them is this old."""
LET_GO_MILLISECONDS = 7 * 24 * 3600 * 1000
"""A shard without owner for so long holds back trimming no longer (DESIGN 3.6)."""
RETRY_MILLISECONDS = 60_000


def is_worth_archiving(*, last: Position, archived: Position, begun_at: int, now: int) -> bool:
    """Whether what came after `archived` is long or old enough. `begun_at`: when the log began, in milliseconds."""
    waiting = last.n - archived.n
    oldest_at = archived.milliseconds or begun_at
    return waiting >= CHUNK_ENTRIES or (waiting > 0 and now - oldest_at > OLDEST_MILLISECONDS)
