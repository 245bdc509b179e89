"""Track the entries of each probe in the stream `probe_results`: each probe keeps its newest entries, no matter how
many entries other probes add.

Input: ids of entries. Output: ids of excess entries. Next: `writer`, which deletes them.
"""

from __future__ import annotations

from collections import deque

ProbeKey = tuple[bytes, ...]
"""Identifies a probe: the pod, the container, and which of its probes."""


class PerProbe:
    """The ids of the entries of each probe. Not thread-safe."""

    def __init__(self, most_entries: int, most_probes: int = 4_000) -> None:
        """Keep up to `most_entries` per probe. Beyond `most_probes` probes, the least recently active one is forgotten;
        only the cap on the whole stream then removes its entries.
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
        """Return the ids of the entries to delete."""
        return self._too_many

    def deleted(self) -> None:
        """Record that all entries returned by `too_many` have been deleted."""
        self._too_many = []
