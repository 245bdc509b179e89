"""The setting `shards`: how many shards a kind has in a new log. `chronolet shards` uses the same rules.

Input: text such as `pod=8,prober=8`. Output: a count for each named kind. Next: `table`; `cli.shards`.
"""

from __future__ import annotations

from typing import Any

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import SettingsError, pairs

DIVISIBLE = ("pod", "prober")
"""The kinds that may have several shards: their entities do not depend on one another. Every other kind has one entity,
the node, or decides about all of its entities together, so it has one shard.
"""
MOST_SHARDS = 64
"""Maximum number of shards of a kind: more than a machine can use. Each costs a thread, a mailbox and a snapshot."""


def shard_counts(what: str, value: Any) -> dict[str, int]:
    """Parse shard counts by kind, given as comma-separated pairs (`pod=8,prober=8`) or as a map."""
    found = value if isinstance(value, dict) else pairs(what, str(value), "=")
    return {kind: shard_count(what, str(kind), str(count)) for kind, count in found.items()}


def shard_count(what: str, kind: str, count: str) -> int:
    """Check one kind and parse its count. Raises SettingsError."""
    if kind not in DIVISIBLE:
        from chronolet.node.settings.settings import ALL_ACTORS  # noqa: PLC0415 - only an error needs it

        allowed = " or ".join(DIVISIBLE)
        if kind in ALL_ACTORS:
            raise SettingsError(f"{what}: found {kind}={count}, but {kind} always has one shard; expected {allowed}")
        raise SettingsError(f"{what}: found kind {kind!r}, expected {allowed}")
    if count not in map(str, range(1, MOST_SHARDS + 1)):
        raise SettingsError(f"{what}: {kind}: found {count!r}, expected a number of shards from 1 to {MOST_SHARDS}")
    return int(count)


SHARD_COUNTS = Setting(
    "shards",
    "--shards",
    "CHRONOLET_SHARDS",
    "shard counts with which a new log begins, such as pod=8,prober=8; change those of an existing log with "
    "`chronolet shards` [default: pod=4,prober=4]",
    shard_counts,
    metavar="COUNTS",
)
