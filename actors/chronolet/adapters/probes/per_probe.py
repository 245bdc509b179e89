"""Which entries of the stream `probe_results` are whose: each probe keeps its last ones, however many the others have.

Comes in: ids of entries. Goes out: those that are too many. Next: `results`, which deletes them.
"""

from __future__ import annotations

from collections import deque

MOST_PROBES = 4_000
"""So many are known; the entries of one that was not heard of for longest are left to the cap of the whole stream."""

Who = tuple[bytes, ...]
"""A probe: pod, container and name."""


class PerProbe:
    """Used on one thread."""

    def __init__(self, most: int) -> None:
        """Keep so many entries of each probe."""
        self._most = most
        self._ids: dict[Who, deque[bytes]] = {}
        self._too_many: list[bytes] = []

    def added(self, who: Who, entry_id: bytes) -> None:
        """The probe has an entry more, the newest."""
        ids = self._ids.pop(who, None) or deque[bytes]()
        self._ids[who] = ids
        ids.append(entry_id)
        if len(ids) > self._most:
            self._too_many.append(ids.popleft())
        if len(self._ids) > MOST_PROBES:
            del self._ids[next(iter(self._ids))]

    def too_many(self) -> list[bytes]:
        """What is to be deleted."""
        return self._too_many

    def deleted(self) -> None:
        """All of that is."""
        self._too_many = []
