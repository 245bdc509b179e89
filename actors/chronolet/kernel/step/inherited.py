"""Filters out log entries that an entity's former shard had already decided before the number of shards was changed.

Input: a message of the log, and the tables in the shard's hash. Output: the message for the entities that have not
decided it. Pure. Next: `log.recovery`. Running hosts do not need the filter, because all entries that the tables
concern are in the log before the first owner of a new shard recovers it.

Each former shard had its own cursor. A new shard begins at the lowest of these cursors, and skips for each entity what
the entity's former shard had decided: every entry up to that shard's cursor. After a second change, a table of the
first change may still matter; an entry is decided if any table says so.
"""

from __future__ import annotations

from chronolet.kernel.step.input import Input
from chronolet.kernel.storage.layout import Decided
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import shard_for


def undecided(item: Input, kind: str, decided: Decided) -> Input | None:
    """Return the message with the keys of the entities that have not decided it; None if there are none.

    A message that cannot be decoded or routed has no keys. Only the first shard of a kind quarantines it, so only the
    cursors of the first former shards count.
    """
    if not decided or not item.keys:
        return None if any(item.at <= table[0] for table in decided) else item
    keys = tuple(key for key in item.keys if not any(item.at <= _cursor(kind, key, table) for table in decided))
    return item._replace(keys=keys) if keys else None


def _cursor(kind: str, key: str, table: tuple[Position, ...]) -> Position:
    return table[shard_for(kind, len(table), key).index or 0]


def still_needed(decided: Decided, cursor: Position) -> Decided:
    """Return the tables that contain a position beyond `cursor`. Any other table adds nothing to the cursor."""
    return tuple(table for table in decided if max(table) > cursor)
