"""Hooks for measuring the kernel: steps, effects, restarts, the lease.

Input: calls from hosts, the effect runner and the supervisor, on many threads. Output: nothing; a subclass overrides
the methods for what it measures. Implementations must not block and must not raise. Next: `node.metrics`, which turns
the calls into Prometheus metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

Outcome = Literal["done", "failed", "timed_out", "cancelled", "fenced"]
"""How an effect ended: with a result, with an exception, by exceeding its time-out, by being cancelled, or because the
lease was not known to be valid.
"""


class Queue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The queue of a lane, as seen by a one-shot effect that joined it.

    On arrival, `at_work` effects were running, of at most `allowed`; `holders` names the entities of those that had
    been running longest. If `at_work` is below `allowed`, the effect has to wait because the lane's batch has just
    begun and its first effect has a head start (see `effects.pace`). `ahead` is the number of effects queued before
    this one or, once it is about to start, the number that started while it waited.
    """

    at_work: int
    allowed: int
    ahead: int = 0
    holders: tuple[str, ...] = ()


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that wait for a host in memory. The reader has delivered them; the host has not taken them yet."""

    log_entries: int = 0
    """Log entries of the shard's subscriptions."""
    commands: int = 0
    """Commands from the shard's mailbox."""
    others: int = 0
    """Results of effects, signals and timers."""
    oldest_entry_at: int = 0
    """Time of the oldest waiting log entry in milliseconds since the epoch; 0 if none is waiting."""
    oldest_command_at: int = 0
    """The same for the oldest waiting command."""
    seconds_waiting: float = 0.0
    """For how long messages have been waiting since the host last took some; 0 if none is waiting."""


class Observer:
    """The kernel's hooks, one method for each kind of occurrence. In this base class, they do nothing. All durations
    are in seconds.
    """

    def step_done(self, shard: Shard, events: Sequence[Event], seconds: float) -> None:
        """Called after a step with these events was committed. `seconds` is the time spent in the store."""

    def turn_taken(self, shard: Shard, messages: int) -> None:
        """Called when a host has taken `messages` messages, at least one, from its inbox for its next step."""

    def step_refused(self, shard: Shard, reason: Literal["fenced", "conflict"]) -> None:
        """Called after the store refused a step: the shard is lost (`fenced`) or must be reloaded (`conflict`)."""

    def effect_queued(self, kind: str, entity: str, cause: str, queue: Queue) -> None:
        """Called when an effect joins a queue. `cause`: position of the event that requested the effect."""

    def effect_withdrawn(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """Called when an effect is cancelled after `seconds` in the queue, without ever having run."""

    def effect_waited(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """Called when an effect leaves the queue after `seconds`, just before it starts."""

    def effect_started(self, kind: str, effect: str, *, began: float = 0.0, standing: bool = False) -> None:
        """Called when an effect starts. `effect` is its class name, `began` the time by `time.monotonic`."""

    def effect_done(
        self, kind: str, effect: str, seconds: float, outcome: Outcome, *, began: float = 0.0, standing: bool = False
    ) -> None:
        """Called when an effect has ended, with the same `began` and `standing` as `effect_started`. `began` is 0 if it
        ended without having started: it timed out while it waited for a thread, or there was none.
        """

    def dead_lettered(self, kind: str) -> None:
        """Called when a message or an effect is given up and sent to the dead-letter stream."""

    def host_restarted(self, shard: Shard) -> None:
        """Called after a host failed. Its supervisor will restart it."""

    def shards_owned(self, count: int) -> None:
        """Called with the number of shards that the process now hosts."""

    def shard_acquired(self, shard: Shard, states: Mapping[str, Any], backlog: Callable[[], Backlog]) -> None:
        """Called on the host's thread before the first turn of a host. `states`: the recovered entities, by key.
        `backlog` counts the messages that wait for the host at that time; any thread may call it at any time.
        """

    def shard_taken(self, shard: Shard) -> None:
        """Called when the process finds that another process owns a shard that this process hosts."""

    def shard_moved(self, shard: Shard) -> None:
        """Called when the process has released a shard for another process to take."""

    def shard_lost(self, shard: Shard, keys: Collection[str]) -> None:
        """Called when the process has stopped hosting the shard, permanently or until a restart. `keys`: the shard's
        entities.
        """

    def lease_valid(self, valid: bool) -> None:
        """Called on each tick. `valid`: whether the lease is known to be valid."""

    def recovered(self, shards: int, events: int, seconds: float) -> None:
        """Called after a recovery of `shards` shards, which read `events` log entries in `seconds`."""
