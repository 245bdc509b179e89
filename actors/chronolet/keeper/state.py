"""State of the keeper: its current job, the progress of archiving and trimming, the shards it no longer waits for.

Folded from its own events. Next: `decider`.
"""

from __future__ import annotations

import msgspec


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Positions as text, empty if there is none yet. `archiving_upto` and `trimming` are the open intents."""

    jobs: int = 0
    """Number of jobs requested; makes each intent unique."""
    archiving_after: str = ""
    archiving_upto: str = ""
    trimming: str = ""
    archived: str = ""
    goal: str = ""
    """How far to trim: to the end of the last archive file but one. The entries of the last one stay in the stream."""
    trimmed: str = ""
    """The requested position of the last completed trim."""
    failures: int = 0
    """Consecutive failed jobs."""
    retry_at: int = 0
    """Earliest time of the next job after a failure, in milliseconds."""
    let_go: tuple[str, ...] = ()
    """Shards that no longer hold back trimming."""
    ballast_gone: bool = False
    """Whether the disk reserve was released and not restored."""
