"""What a host has the server write about its shard: steps, tries, snapshots.

Comes in: turns as the ledger made them. Goes out: the store's calls under the owner's token, each sent again byte for
byte until it is answered (DESIGN 3.3). Raises what ends a host: the shard is somebody else's, it is further than
thought, or the server has lost a tail. Called by the host's own thread only. Next: `host`, `store`.
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
from chronolet_schemas.envelope import Position

FIRST_RETRY_SECONDS = 0.05
LONGEST_RETRY_SECONDS = 1.0
SNAPSHOT_EVENTS = 10_000
SNAPSHOT_SECONDS = 600.0

log = structlog.get_logger("chronolet.kernel")

T = TypeVar("T")


class ShardLost(Exception):  # noqa: N818 - what happened to the host
    """Somebody else owns the shard now."""

    def __init__(self, token: str) -> None:
        super().__init__(f"the shard now belongs to {token or 'nobody'}")
        self.token = token


class ServerBehind(Exception):  # noqa: N818
    """The server no longer knows what this host committed, or read from it: it has lost a tail of its data."""


class ShardDiverged(Exception):  # noqa: N818
    """The shard is further than the step expected: it must be loaded again."""


class ShardWriter:
    """Writes for one host, until that is told to stop: then a call that is not answered raises its own error."""

    def __init__(
        self,
        ledger: Ledger[Any],
        store: Store,
        snapshot_at: Position,
        stopping: threading.Event,
        new_id: Callable[[], str],
    ) -> None:
        """`snapshot_at`: of the snapshot that the ledger was restored from. `new_id` names each step."""
        self._ledger = ledger
        self._store = store
        self._stopping = stopping
        self._new_id = new_id
        self._last_step = time.monotonic()
        self._snapshot_at = snapshot_at
        self._snapshot_time = time.monotonic()
        self._events_since = 0

    # -- steps ---------------------------------------------------------------------------------------------------
    def commit(self, turn: Turn[Any], faults: Faults, observer: Observer) -> Committed:
        """Make the turn a step of the log, and the ledger's states those of the turn."""
        ledger, step = self._ledger, self._step(turn)
        types = "+".join(record.type.partition("@")[0] for record in turn.records)
        faults.point(f"step/before {ledger.shard} {types}")
        started = time.monotonic()
        answer = self._send(step, observer)
        self._last_step = time.monotonic()
        faults.point(f"step/after {ledger.shard} {types}")
        ledger.committed(turn, answer)
        observer.step_done(ledger.shard, turn.events, self._last_step - started)
        self._events_since += len(turn.records)
        return answer

    def seconds_since_step(self) -> float:
        """Since the last commit, or since the host began."""
        return time.monotonic() - self._last_step

    def count_tries(self, counts: Mapping[str, int]) -> None:
        """Record in the shard's hash, before messages are decided, the attempt count of each, in one round trip."""
        ledger = self._ledger
        answer = self._patiently(lambda: self._store.count_tries(ledger.shard, ledger.token, counts))
        if isinstance(answer, Fenced):
            raise self._lost(answer)

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
            forget_tries=tuple(turn.forget),
            even_if_full=ledger.kind.commits_when_full,
        )

    def _send(self, step: Step, observer: Observer) -> Committed:
        """Send until answered: the same bytes each time, never another step in its place."""
        answer = self._patiently(lambda: self._store.step(step))
        if isinstance(answer, Fenced):
            observer.step_refused(step.shard, "fenced")
            raise self._lost(answer)
        if isinstance(answer, Conflict):
            observer.step_refused(step.shard, "conflict")
            text = f"{step.shard}: a step from version {step.version} on, but the server has version {answer.version}"
            if answer.version > step.version:
                raise ShardDiverged(text)
            raise ServerBehind(f"{text}, or lacks what was read from it")
        return answer

    def _patiently(self, call: Callable[[], T]) -> T:
        """The answer of a call that may be repeated, however long the server is away or a key of it unusable."""
        pause, said = FIRST_RETRY_SECONDS, ""
        while True:
            try:
                return call()
            except (StoreUnreachable, StoreBroken) as error:
                if str(error) != said:  # once, however long it takes
                    said = str(error)
                    log.warning("not answered, asking again", shard=str(self._ledger.shard), error=said)
                if self._stopping.wait(pause):
                    raise
                pause = min(pause * 2, LONGEST_RETRY_SECONDS)

    def _lost(self, answer: Fenced) -> ShardLost | ServerBehind:
        if epoch_of(answer.token) < epoch_of(self._ledger.token):
            return ServerBehind(f"{self._ledger.shard}: the server's token {answer.token!r} is older than ours")
        return ShardLost(answer.token)

    # -- snapshots -----------------------------------------------------------------------------------------------
    def snapshot_if_due(self) -> None:
        """Keep a snapshot after many events of one's own, much of the log, or a long time with news."""
        ledger = self._ledger
        at = max(ledger.at, ledger.log_cursor)
        many = self._events_since >= SNAPSHOT_EVENTS or at.n - self._snapshot_at.n >= SNAPSHOT_EVENTS
        old = time.monotonic() - self._snapshot_time > SNAPSHOT_SECONDS and at > self._snapshot_at
        if many or old:
            self._snapshot(at)

    def _snapshot(self, at: Position) -> None:
        ledger = self._ledger
        snapshot = Snapshot(position=at, format=ledger.kind.format, state=ledger.snapshot())
        try:
            kept = self._store.snapshot(ledger.shard, ledger.token, snapshot)
        except (StoreUnreachable, StoreBroken) as error:
            log.warning("no snapshot this time", shard=str(ledger.shard), error=str(error))
        else:
            if not kept:
                log.warning("the snapshot was refused", shard=str(ledger.shard), at=str(at))
        # Kept or not, the next one is due in its own time: encoding all states each turn would cost too much.
        self._snapshot_at, self._snapshot_time, self._events_since = at, time.monotonic(), 0
