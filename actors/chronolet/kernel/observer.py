"""What the kernel tells those who measure it: steps, effects, restarts, the lease.

Comes in: nothing. Goes out: what hosts, runner and supervisor call; deaf as it stands, whoever measures overrides it.
Calls come from many threads, must return at once and must not raise. Next: `node.metrics`, which counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

Outcome = Literal["done", "failed", "timed_out", "cancelled", "fenced"]
"""How an effect ended: with its result, by an exception, too late, unwanted, or without a valid lease."""


class Queue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stood before something that had to wait for its turn.

    When it came, `at_work` of at most `allowed` were at work, `holders` names those that had been for longest. Fewer
    than allowed: the first of a batch has a head start. `ahead` waited before it, or, once it has its turn, had theirs
    first.
    """

    at_work: int
    allowed: int
    ahead: int = 0
    holders: tuple[str, ...] = ()


class Observer:
    """Told of what has happened, after it has happened; this one makes nothing of it. All durations in seconds."""

    def step_done(self, shard: Shard, events: Sequence[Event], seconds: float) -> None:
        """A step was committed with these events; `seconds` is the store's part of it."""

    def step_refused(self, shard: Shard, reason: Literal["fenced", "conflict"]) -> None:
        """The store refused a step: the shard is lost, or has to be loaded again."""

    def effect_queued(self, kind: str, entity: str, cause: str, queue: Queue) -> None:
        """An effect that the entry at `cause` asked for has to wait for its turn."""

    def effect_withdrawn(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """An effect that waited for its turn is not wanted any more, after so long; it never had one."""

    def effect_waited(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """An effect that the entry at `cause` asked for has waited so long for its turn."""

    def effect_started(self, kind: str, effect: str) -> None:
        """A worker runs now. `effect` is the effect's class name."""

    def effect_done(self, kind: str, effect: str, seconds: float, outcome: Outcome) -> None:
        """The worker of an `effect_started` has ended."""

    def dead_lettered(self, kind: str) -> None:
        """A message was given up and went to the dead-letter stream."""

    def host_restarted(self, shard: Shard) -> None:
        """A host failed and its supervisor started it again."""

    def shards_owned(self, count: int) -> None:
        """So many shards are hosted by this process from now on."""

    def shard_lost(self, shard: Shard, keys: Collection[str]) -> None:
        """It is hosted here no more, or not for the moment; these were its entities."""

    def lease_valid(self, valid: bool) -> None:
        """The lease was renewed, or is no longer known to be valid."""

    def recovered(self, shards: int, events: int, seconds: float) -> None:
        """A recovery of that many shards has read that many events."""
