"""A mutable view of an LRU cache. Pure.

Input: a `Cache` from the state. Output: the entries that were put in, and the resulting `Cache`. Next: `correlator`,
which uses the view for its decisions; `evolve`, which applies the recorded entries. Source: the LRU caches of
client-go's recorder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from chronolet.kube_events.state import Cache

V = TypeVar("V")


class Recent(Generic[V]):
    """An overlay of new entries on a cache. The cache itself is neither changed nor copied, because most of its entries
    do not change.
    """

    def __init__(self, cache: Cache[V]) -> None:
        self.changed: dict[str, V] = {}
        """New entries that have not been evicted, the newest last."""
        self._base = cache
        self._evicted: set[str] = set()
        """Keys of evicted entries, both of the base cache and new ones."""
        self._room = cache.size - len(cache.entries)
        self._oldest = cache.oldest

    def get(self, key: str) -> V | None:
        """Return the value of a key; None if it has none. The caller then puts a new value, which marks the entry as
        recently used.
        """
        value = self.changed.get(key)
        if value is not None or key in self._evicted:
            return value
        found = self._base.entries.get(key)
        return None if found is None else found[1]

    def put(self, key: str, value: V) -> None:
        """Add the value as the newest entry; evict the oldest entry if the cache is full."""
        known = self.changed.pop(key, None) is not None
        if not known and (key in self._evicted or key not in self._base.entries):
            if self._room:
                self._room -= 1
            else:
                self._drop_oldest()
        self.changed[key] = value

    def _drop_oldest(self) -> None:
        """Evict the oldest entry. Entries of the base cache that have not been put in again are older than all new
        ones.
        """
        order = self._base.order
        while self._oldest < self._base.next:
            key = order.get(self._oldest)
            self._oldest += 1
            if key is not None and key not in self.changed:
                self._evicted.add(key)
                return
        oldest = next(iter(self.changed))
        del self.changed[oldest]
        self._evicted.add(oldest)


def remembered(cache: Cache[V], news: Mapping[str, V]) -> Cache[V]:
    """Return the cache after putting in these entries in order. Only the most recent entries are kept, up to the
    cache's size.
    """
    entries, order = cache.entries.mutate(), cache.order.mutate()
    for turn, (key, value) in enumerate(news.items(), cache.next):
        before = entries.get(key)
        if before is not None:
            del order[before[0]]
        entries[key] = (turn, value)
        order[turn] = key
    oldest = cache.oldest
    for _ in range(len(entries) - cache.size):
        while (dropped := order.pop(oldest, None)) is None:
            oldest += 1
        del entries[dropped]
    return Cache(
        size=cache.size,
        entries=entries.finish(),
        order=order.finish(),
        next=cache.next + len(news),
        oldest=oldest,
    )
