"""The numbers of correlation and delivery. Pure.

Comes in: settings. Goes out: `Policy`, and the pause before a post is tried again. Next: `decider`, `correlator`.
Source: client-go's tools/record (events_cache.go, event.go).
"""

from __future__ import annotations

import zlib

import msgspec

MAX_TRIES = 12
RETRY_PAUSE = 10_000
QUEUE_LENGTH = 1_000
"""What the kubelet's broadcaster holds for a watcher that does not come along."""

_ALL = 1 << 32


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The correlator's numbers. Times in milliseconds."""

    burst: int = 25
    """So many events of one object may come at once."""
    refill: int = 300_000
    """After so long an object may have one event more."""
    max_events: int = 10
    """The so manieth different message of similar events is combined with those before it."""
    interval: int = 600_000
    """Similar events that are further apart than this have nothing to do with one another."""
    spam_key: tuple[str, ...] = ("object", "type")
    """What an object's tokens are for: `object`, `type`, `reason`. The source is one and the same on a node."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How one sink is delivered to."""

    backlog: int = QUEUE_LENGTH
    """So many posts may wait for it."""
    batch: int = 20
    """So many are handed to it at a time; they are not given up while it may be at them."""
    max_tries: int = MAX_TRIES
    pause: int = RETRY_PAUSE
    """Before a post is tried again."""

    def retry_at(self, now: int, *, tries: int, sink: str, name: str) -> int:
        """When a post that has failed so often is tried again.

        The first pause is a share of the whole: not all nodes come back to a server at once. It hangs on the post's
        name, for a decider draws no lots.
        """
        share = zlib.crc32(f"{sink}/{name}".encode()) if tries == 1 else _ALL
        return now + max(1, self.pause * share // _ALL)

    def too_many(self, waiting: int) -> int:
        """How many of those that wait are to be given up: a tenth more than must, for each time is an event."""
        over = waiting - self.backlog
        return over + self.backlog // 10 if over > 0 else 0


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `sinks` are those that the agent was told to deliver to."""

    options: Options = Options()
    sinks: dict[str, Rules] = {}
