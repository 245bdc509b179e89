"""Parameters of correlation and delivery. Pure.

Input: settings. Output: `Policy`, and the pause before a retry. Next: `decider`, `correlator`. Source: client-go's
tools/record (events_cache.go, event.go).
"""

from __future__ import annotations

import zlib

import msgspec

MAX_TRIES = 12
RETRY_PAUSE = 10_000
QUEUE_LENGTH = 1_000
"""Queue length that the kubelet's broadcaster uses for a slow watcher."""

_ALL = 1 << 32


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The correlator's parameters. Times are in milliseconds."""

    burst: int = 25
    """Capacity of a token bucket: the number of KubeEvents with the same `spam_key`, by default one object and one
    type, that can be posted in quick succession.
    """
    refill: int = 300_000
    """Time in which a token bucket regains one token."""
    max_events: int = 10
    """Number of different messages at which similar events start to be combined."""
    interval: int = 600_000
    """If similar events are further apart than this, they are not combined."""
    spam_key: tuple[str, ...] = ("object", "type")
    """Fields that together identify a token bucket; each is `object`, `type` or `reason`. The kubelet's `source` is
    left out because it is the same for all events of a node.
    """


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Delivery parameters of one sink."""

    backlog: int = QUEUE_LENGTH
    """Maximum number of waiting posts."""
    batch: int = 20
    """Maximum number of posts per delivery. Posts whose delivery may be in progress are not given up."""
    max_tries: int = MAX_TRIES
    pause: int = RETRY_PAUSE
    """Pause before a retry, in milliseconds."""

    def retry_at(self, now: int, *, attempts: int, sink: str, name: str) -> int:
        """Return when to retry a post after this many failed attempts.

        The first pause is only a fraction of `pause`, so that not all nodes return to a server at the same time. The
        fraction is derived from the names of sink and post, because a decider uses no randomness.
        """
        share = zlib.crc32(f"{sink}/{name}".encode()) if attempts == 1 else _ALL
        return now + max(1, self.pause * share // _ALL)

    def too_many(self, waiting: int) -> int:
        """Return how many waiting posts to give up.

        This is a tenth of the backlog more than necessary, so that fewer events are appended to the log.
        """
        over = waiting - self.backlog
        return over + self.backlog // 10 if over > 0 else 0


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of kube_events. `sinks` maps the names of the configured sinks to their parameters."""

    options: Options = Options()
    sinks: dict[str, Rules] = {}
