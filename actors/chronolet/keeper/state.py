"""What the keeper knows: the job at hand, how far it has come, which shards it no longer waits for.

Folded from its own events. Next: `decider`.
"""

from __future__ import annotations

import msgspec


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Positions as text, empty where there is none yet. `archiving_upto` and `trimming` are the open intents."""

    jobs: int = 0
    """How many jobs were asked for: names each intent once."""
    archiving_after: str = ""
    archiving_upto: str = ""
    trimming: str = ""
    archived: str = ""
    goal: str = ""
    """How far to trim: the end of the archive file before the newest, whose entries stay in the stream."""
    trimmed: str = ""
    """What was last asked to be trimmed, and was."""
    failures: int = 0
    """How often a job failed in a row."""
    retry_at: int = 0
    """When the next job may be asked for after a failure, in milliseconds."""
    let_go: tuple[str, ...] = ()
    """Shards that hold back trimming no longer."""
    ballast_gone: bool = False
    """The ballast was given up, and is not back."""
