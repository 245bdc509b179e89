"""A cache of what was seen lately, at work. Pure.

Comes in: a `Cache` of a state. Goes out: what was put into it, and the `Cache` that follows. Next: `correlator`, which
decides with it; `evolve`, which puts in again what was decided. Answers to the LRU caches of client-go's recorder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from chronolet.kube_events.state import Cache

V = TypeVar("V")


class Recent(Generic[V]):
    """Changes of its own; the cache that it began with stays as it is."""

    def __init__(self, cache: Cache[V]) -> None:
        self.changed: dict[str, V] = {}
        """What was put in, the last of it at the end."""
        self._size = cache.size
        self._entries = cache.entries.mutate()
        self._order = cache.order.mutate()
        self._next = cache.next
        self._oldest = cache.oldest

    def get(self, key: str) -> V | None:
        """What stands there. Whoever asks puts something there next: so it counts as seen."""
        found = self._entries.get(key)
        return None if found is None else found[1]

    def put(self, key: str, value: V) -> None:
        """As the newest; the oldest leaves if there are too many."""
        entries, order, turn = self._entries, self._order, self._next
        before = entries.get(key)
        if before is not None:
            del order[before[0]]
            self._oldest += before[0] == self._oldest
        elif len(entries) == self._size:
            self._drop_oldest()
        entries[key] = (turn, value)
        order[turn] = key
        self._next = turn + 1
        self.changed.pop(key, None)
        self.changed[key] = value

    def finished(self) -> Cache[V]:
        """The cache with all that was put in; nothing may be put in after this."""
        return Cache(
            size=self._size,
            entries=self._entries.finish(),
            order=self._order.finish(),
            next=self._next,
            oldest=self._oldest,
        )

    def _drop_oldest(self) -> None:
        turn = self._oldest
        while (key := self._order.pop(turn, None)) is None:
            turn += 1
        del self._entries[key]
        self._oldest = turn + 1


def remembered(cache: Cache[V], news: Mapping[str, V]) -> Cache[V]:
    """The cache after these, in their order."""
    recent = Recent(cache)
    for key, value in news.items():
        recent.put(key, value)
    return recent.finished()
