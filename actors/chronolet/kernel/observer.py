"""Hooks for measuring the kernel: steps, effects, restarts, the lease.

Input: calls from hosts, effect runner and supervisor, on many threads. Output: nothing; a subclass overrides what
it measures. Implementations must not block and must not raise. Next: `node.metrics`, which counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

Outcome = Literal["done", "failed", "timed_out", "cancelled", "fenced"]
"""How an effect ended: with a result, with an exception, by its time-out, cancelled, or without a valid lease."""


class Queue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The queue that a one-shot effect joined.

    On arrival, `at_work` effects were running out of at most `allowed`, and `holders` names the longest-running ones.
    `at_work` below `allowed` means that the first effect of a batch has a head start. `ahead` is the number of effects
    queued before it or, once it runs, the number that started before it.
    """

    at_work: int
    allowed: int
    ahead: int = 0
    holders: tuple[str, ...] = ()


class Observer:
    """Receives a call after each occurrence; this base class ignores them all. All durations are in seconds."""

    def step_done(self, shard: Shard, events: Sequence[Event], seconds: float) -> None:
        """A step was committed with these events. `seconds` is the time spent in the store."""

    def step_refused(self, shard: Shard, reason: Literal["fenced", "conflict"]) -> None:
        """The store refused a step: the shard is lost (fenced) or must be reloaded (conflict)."""

    def effect_queued(self, kind: str, entity: str, cause: str, queue: Queue) -> None:
        """An effect was queued. `cause`: the position of the event that requested it."""

    def effect_withdrawn(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """A queued effect was cancelled after `seconds` in the queue; it never ran."""

    def effect_waited(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """An effect leaves the queue after `seconds` and is about to start."""

    def effect_started(self, kind: str, effect: str) -> None:
        """An effect started. `effect` is its class name."""

    def effect_done(self, kind: str, effect: str, seconds: float, outcome: Outcome) -> None:
        """An effect that was reported to `effect_started` has ended."""

    def dead_lettered(self, kind: str) -> None:
        """A message or an effect was given up and sent to the dead-letter stream."""

    def host_restarted(self, shard: Shard) -> None:
        """A host failed; its supervisor will restart it."""

    def shards_owned(self, count: int) -> None:
        """The process now hosts `count` shards."""

    def shard_lost(self, shard: Shard, keys: Collection[str]) -> None:
        """The process stopped hosting the shard, for good or until a restart. `keys` are the shard's entities."""

    def lease_valid(self, valid: bool) -> None:
        """The lease is known to be valid, or is not; called each tick."""

    def recovered(self, shards: int, events: int, seconds: float) -> None:
        """A recovery of `shards` shards read `events` log entries in `seconds`."""
