"""Track the entries of each probe in the stream `probe_results`: each keeps its newest, however many others add.

Input: ids of entries. Output: ids of excess entries. Next: `writer`, which deletes them.
"""

from __future__ import annotations

from collections import deque

ProbeKey = tuple[bytes, ...]
"""A probe: pod, container and name."""


class PerProbe:
    """Used on one thread."""

    def __init__(self, most_entries: int, most_probes: int = 4_000) -> None:
        """Keep `most_entries` of each probe. Beyond `most_probes`, the one with the oldest activity is forgotten, and
        its entries are left to the cap of the whole stream.
        """
        self._most_entries = most_entries
        self._most_probes = most_probes
        self._ids: dict[ProbeKey, deque[bytes]] = {}
        self._too_many: list[bytes] = []

    def added(self, probe: ProbeKey, entry_id: bytes) -> None:
        """Record a new entry of a probe."""
        ids = self._ids.pop(probe, None) or deque[bytes]()
        self._ids[probe] = ids
        ids.append(entry_id)
        if len(ids) > self._most_entries:
            self._too_many.append(ids.popleft())
        if len(self._ids) > self._most_probes:
            del self._ids[next(iter(self._ids))]

    def too_many(self) -> list[bytes]:
        """Return the ids to delete."""
        return self._too_many

    def deleted(self) -> None:
        """Record that all ids from `too_many` are deleted."""
        self._too_many = []
