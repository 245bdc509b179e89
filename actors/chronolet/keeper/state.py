"""What the keeper knows: the job at hand, which shards it no longer waits for. Folded from its own events."""

from __future__ import annotations

import msgspec


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Positions as text. `archiving` and `trimming` are the open intents, empty where there is none."""

    jobs: int = 0
    """How many jobs were asked for: names each intent once."""
    archiving_after: str = ""
    archiving_upto: str = ""
    trimming: str = ""
    archived: str = ""
    retry_at: int = 0
    """When a failed job may be asked for again, in milliseconds."""
    let_go: tuple[str, ...] = ()
    """Shards that hold back trimming no longer."""
