"""Writes a host's shard to the store: steps, attempt counts and snapshots.

Input: turns from the ledger. Output: store calls with the owner's fencing token. A step or count is retried with the
same bytes until the store replies. Raises ShardLost, ShardDiverged or ServerBehind, each of which ends the host. Called
only on the host's own thread. Next: `host`, `store`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog

from chronolet.kernel.faults import Faults
from chronolet.kernel.observer import Observer
from chronolet.kernel.step.ledger import Ledger, Turn
from chronolet.kernel.storage.store import (
    Committed,
    Conflict,
    Fenced,
    Snapshot,
    Step,
    Store,
    StoreBroken,
    StoreUnreachable,
    epoch_of,
)
from chronolet.kernel.timing import Timing
from chronolet_schemas.envelope import Position

FIRST_RETRY_SECONDS = 0.05
LONGEST_RETRY_SECONDS = 1.0

log = structlog.get_logger("chronolet.kernel")

T = TypeVar("T")


class ShardLost(Exception):  # noqa: N818 - what happened to the host
    """The shard now has another owner, or none."""

    def __init__(self, token: str) -> None:
        super().__init__(f"the shard's owner is now {token or 'nobody'}")
        self.token = token


class ServerBehind(Exception):  # noqa: N818
    """The server lacks data that this host has committed to it or read from it: it has lost the tail of the log."""


class ShardDiverged(Exception):  # noqa: N818
    """The server's version of the shard is newer than the step expects: the shard must be reloaded."""


class ShardWriter:
    """Writes for one host. Once the host is stopping, a failed call raises its error instead of being retried."""

    def __init__(
        self,
        ledger: Ledger[Any],
        store: Store,
        snapshot_at: Position,
        stopping: threading.Event,
        new_id: Callable[[], str],
        *,
        timing: Timing,
    ) -> None:
        """`snapshot_at`: position of the snapshot from which the ledger was restored. `new_id` generates step ids."""
        self._ledger = ledger
        self._store = store
        self._stopping = stopping
        self._new_id = new_id
        self._timing = timing
        self._last_step = time.monotonic()
        self._snapshot_at = snapshot_at
        self._snapshot_time = time.monotonic()
        self._events_since = 0

    # -- steps ---------------------------------------------------------------------------------------------------
    def commit(self, turn: Turn[Any], faults: Faults, observer: Observer) -> Committed:
        """Commit the turn as one step, then apply it to the ledger."""
        ledger, step = self._ledger, self._step(turn)
        types = "+".join(record.type.partition("@")[0] for record in turn.records)
        faults.point(f"step/before {ledger.shard} {types}")
        started = time.monotonic()
        committed = self._send(step, observer)
        self._last_step = time.monotonic()
        faults.point(f"step/after {ledger.shard} {types}")
        ledger.committed(turn, committed)
        log.debug("step committed", shard=str(ledger.shard), position=str(committed.at), types=types)
        observer.step_done(ledger.shard, turn.events, self._last_step - started)
        self._events_since += len(turn.records)
        return committed

    def seconds_since_step(self) -> float:
        """Return the seconds since the last commit, or since the host started."""
        return time.monotonic() - self._last_step

    def count_attempts(self, counts: Mapping[str, int]) -> None:
        """Store counts in the shard's hash, in one round trip: attempts at messages before these are decided, marks of
        effects before these start, and `GIVEN_UP` after a step that gives one of them up.
        """
        ledger = self._ledger
        fenced = self._retried(lambda: self._store.count_attempts(ledger.shard, ledger.token, counts))
        if isinstance(fenced, Fenced):
            raise self._lost(fenced)

    def _step(self, turn: Turn[Any]) -> Step:
        ledger = self._ledger
        return Step(
            shard=ledger.shard,
            token=ledger.token,
            version=ledger.version,
            step_id=self._new_id(),
            schema=ledger.schema,
            log_cursor=ledger.log_cursor,
            new_log_cursor=turn.log_cursor,
            mail_cursor=ledger.mail_cursor,
            new_mail_cursor=turn.mail_cursor,
            records=tuple(turn.records),
            dead=tuple(turn.dead),
            forget_attempts=tuple(turn.forget),
            even_if_full=ledger.kind.commits_when_full,
        )

    def _send(self, step: Step, observer: Observer) -> Committed:
        """Send the step until the store replies, with the same bytes each time. The step must never be replaced by
        another one.
        """
        reply = self._retried(lambda: self._store.step(step))
        if isinstance(reply, Fenced):
            observer.step_refused(step.shard, "fenced")
            raise self._lost(reply)
        if isinstance(reply, Conflict):
            observer.step_refused(step.shard, "conflict")
            text = f"{step.shard}: the step expects version {step.version}, the server has version {reply.version}"
            if reply.version > step.version:
                raise ShardDiverged(text)
            raise ServerBehind(f"{text} or lacks an entry or command that was read from it")
        return reply

    def _retried(self, call: Callable[[], T]) -> T:
        """Retry an idempotent call, with back-off, while the server is unreachable or one of its keys is unusable."""
        pause, logged = FIRST_RETRY_SECONDS, ""
        while True:
            try:
                return call()
            except (StoreUnreachable, StoreBroken) as error:
                if str(error) != logged:  # log an error once, however long it lasts
                    logged = str(error)
                    ledger = self._ledger
                    at = str(max(ledger.at, ledger.log_cursor))
                    log.warning("store call failed, retrying", shard=str(ledger.shard), position=at, error=logged)
                if self._stopping.wait(pause):
                    raise
                pause = min(pause * 2, LONGEST_RETRY_SECONDS)

    def _lost(self, fenced: Fenced) -> ShardLost | ServerBehind:
        if epoch_of(fenced.token) < epoch_of(self._ledger.token):
            return ServerBehind(f"{self._ledger.shard}: the server's token {fenced.token!r} is older than ours")
        return ShardLost(fenced.token)

    # -- snapshots -----------------------------------------------------------------------------------------------
    def snapshot_if_due(self) -> None:
        """Store a snapshot after `snapshot_events` events of the shard or log entries of any kind, or after
        `snapshot_seconds` if the position has advanced.
        """
        ledger, least = self._ledger, self._timing.snapshot_events
        at = max(ledger.at, ledger.log_cursor)
        many = self._events_since >= least or at.n - self._snapshot_at.n >= least
        old = time.monotonic() - self._snapshot_time > self._timing.snapshot_seconds and at > self._snapshot_at
        if many or old:
            self._snapshot(at)

    def _snapshot(self, at: Position) -> None:
        ledger = self._ledger
        snapshot = Snapshot(position=at, format=ledger.snapshot_format, state=ledger.snapshot())
        try:
            stored = self._store.snapshot(ledger.shard, ledger.token, snapshot)
        except (StoreUnreachable, StoreBroken) as error:
            log.warning("snapshot failed, retrying later", shard=str(ledger.shard), position=str(at), error=str(error))
        else:
            if not stored:
                log.warning("snapshot refused", shard=str(ledger.shard), position=str(at))
        # Even after a failure, wait until the next snapshot is due: encoding all states in each turn costs too much.
        self._snapshot_at, self._snapshot_time, self._events_since = at, time.monotonic(), 0
