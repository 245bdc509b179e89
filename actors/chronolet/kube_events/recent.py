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
    """What is put in, over the cache that it began with: that one stays as it is, for most of it is not touched."""

    def __init__(self, cache: Cache[V]) -> None:
        self.changed: dict[str, V] = {}
        """What was put in and is still there, the last of it at the end."""
        self._begun_with = cache
        self._gone: set[str] = set()
        """What has left of what it began with."""
        self._room = cache.size - len(cache.entries)
        self._oldest = cache.oldest

    def get(self, key: str) -> V | None:
        """What stands there. Whoever asks puts something there next: so it counts as seen."""
        value = self.changed.get(key)
        if value is not None or key in self._gone:
            return value
        found = self._begun_with.entries.get(key)
        return None if found is None else found[1]

    def put(self, key: str, value: V) -> None:
        """As the newest; the oldest leaves if there are too many."""
        known = self.changed.pop(key, None) is not None
        if not known and (key in self._gone or key not in self._begun_with.entries):
            if self._room:
                self._room -= 1
            else:
                self._drop_oldest()
        self.changed[key] = value

    def _drop_oldest(self) -> None:
        """What was not put in again is older than all that was."""
        order = self._begun_with.order
        while self._oldest < self._begun_with.next:
            key = order.get(self._oldest)
            self._oldest += 1
            if key is not None and key not in self.changed:
                self._gone.add(key)
                return
        oldest = next(iter(self.changed))
        del self.changed[oldest]
        self._gone.add(oldest)


def remembered(cache: Cache[V], news: Mapping[str, V]) -> Cache[V]:
    """The cache after these, in their order: of all that was ever put in, what was put in last."""
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
