"""State of the `kube_events` kind: the correlator's caches, the waiting posts, and the progress of each sink.

Folded only from the kind's own events. Next: `evolve`, `decider`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import immutables
import msgspec

from chronolet_schemas.kube_events import Known, Post, Similar

V = TypeVar("V")

CACHE_SIZE = 4096
"""Size of each cache, as in the kubelet; the least recently used entry is evicted first."""


class Cache(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """At most `size` entries, each with the number of its last use; `order` maps those numbers to keys."""

    size: int = CACHE_SIZE
    entries: immutables.Map[str, tuple[int, V]] = immutables.Map()
    order: immutables.Map[int, str] = immutables.Map()
    next: int = 1
    oldest: int = 1
    """A lower bound: every number in `order` is at least this."""


class Caches(msgspec.Struct, frozen=True, kw_only=True):
    """The correlator's three caches, keyed by digest."""

    known: Cache[Known] = Cache()
    similar: Cache[Similar] = Cache()
    tokens: Cache[int] = Cache()
    """When each token bucket is full again, in milliseconds."""


class Sink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of one sink. Posts up to `cursor` are settled; later ones from `gap_first` to `gap_last` were given
    up.
    """

    cursor: int
    gap_first: int = 0
    gap_last: int = 0
    tries: int = 0
    """Number of failed attempts to deliver the post after the cursor."""
    retry_at: int = 0
    """When to retry that post, in milliseconds; 0 means immediately."""
    error: str = ""
    """The error of the last failed attempt to deliver that post; empty if there is none."""
    delivered: int = 0
    given_up: int = 0

    def wants(self, number: int) -> bool:
        """Whether this post has yet to be delivered."""
        return number > self.cursor and not self.gap_first <= number <= self.gap_last

    def waiting(self, head: int) -> int:
        """Return the number of posts up to `head` that are neither delivered nor given up."""
        gap = self.gap_last - self.gap_first + 1 if self.gap_first else 0
        return head - self.cursor - gap


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the node's KubeEvent delivery. `posts` maps numbers to the posts for which a sink is still waiting.
    `head` is the newest number.
    """

    caches: Caches = Caches()
    heard: int = 0
    suppressed: int = 0
    upto: str = ""
    """Position of the last `Recorded` that was correlated."""
    head: int = 0
    posts: immutables.Map[int, Post] = immutables.Map()
    sinks: dict[str, Sink] = {}
