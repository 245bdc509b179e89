"""Track the entries of each probe in the stream `probe_results`: each keeps its last ones, however many others add.

Input: ids of entries. Output: ids of excess entries. Next: `writer`, which deletes them.
"""

from __future__ import annotations

from collections import deque

MOST_PROBES = 4_000
"""Maximum number of tracked probes. Beyond it, the one with the oldest activity is forgotten, and its entries are left
to the cap of the whole stream.
"""

ProbeKey = tuple[bytes, ...]
"""A probe: pod, container and name."""


class PerProbe:
    """Used on one thread."""

    def __init__(self, most: int) -> None:
        """Keep `most` entries of each probe."""
        self._most = most
        self._ids: dict[ProbeKey, deque[bytes]] = {}
        self._too_many: list[bytes] = []

    def added(self, probe: ProbeKey, entry_id: bytes) -> None:
        """Record a new entry of a probe."""
        ids = self._ids.pop(probe, None) or deque[bytes]()
        self._ids[probe] = ids
        ids.append(entry_id)
        if len(ids) > self._most:
            self._too_many.append(ids.popleft())
        if len(self._ids) > MOST_PROBES:
            del self._ids[next(iter(self._ids))]

    def too_many(self) -> list[bytes]:
        """Return the ids to delete."""
        return self._too_many

    def deleted(self) -> None:
        """Record that all ids from `too_many` are deleted."""
        self._too_many = []
