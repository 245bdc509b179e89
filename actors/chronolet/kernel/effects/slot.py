"""One effect in progress: a slot with its worker, its time-out and its result.

Input: an effect that `runner` starts. Output: the effect's result as an input of the host, from any thread; or
`SlotFreed` if the effect ends without a result. Next: `runner`, which reconciles slots with the states; `host`, which
decides the results.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import structlog

from chronolet.kernel.effects.lanes import Lanes
from chronolet.kernel.effects.timers import Timer, Timers
from chronolet.kernel.faults import Faults
from chronolet.kernel.kind import Begun, Effect, EffectFailed, EventDriven, Job, Report
from chronolet.kernel.observer import Observer, Outcome, Queue
from chronolet.kernel.step.input import Input
from chronolet.kernel.timing import Timing
from chronolet_schemas.envelope import START, Signal


class LostOwnership(Exception):  # noqa: N818 - the state of the caller
    """The effect may no longer act: it is cancelled, or the process's lease is not known to be valid."""


class Permit(Protocol):
    """The part of the lease that effects use."""

    def valid(self) -> bool:
        """Whether the process may act now."""

    def join(self, effect: Slot) -> None:
        """Register a standing effect; its `lapse` is called when the lease lapses."""

    def leave(self, effect: Slot) -> None:
        """Unregister a standing effect, which has ended."""


class SlotFreed(NamedTuple):
    """Notifies the host that an effect ended without a result: it was cancelled or fenced, or is a standing effect."""

    slot: Slot
    error: str = ""
    ran_seconds: float = 0.0


class PauseOver(NamedTuple):
    """Notifies the host that a subject's back-off has ended."""

    key: str
    subject: str


class Cleared(NamedTuple):
    """Notifies the host that an effect has been running for long enough not to be suspected of ending the process."""

    slot: Slot


class EffectInput(NamedTuple):
    """The result of an effect as an input of the host, with the slot to free once the result is decided."""

    slot: Slot
    item: Input


class RunnerDependencies(NamedTuple):
    """Dependencies shared by all effects of a host."""

    lanes: Lanes
    timers: Timers
    permit: Permit
    faults: Faults
    observer: Observer
    timing: Timing
    deliver: Callable[[EffectInput | SlotFreed | PauseOver | Cleared | Input], None]
    token: str = ""
    """The fencing token of the shard that owns the effects."""


class Slot:
    """One effect in progress; implements the `EffectContext` that its worker receives."""

    def __init__(
        self,
        shared: RunnerDependencies,
        kind: str,
        key: str,
        effect: Effect,
        *,
        job: Job | EventDriven,
        cause: str,
        standing: bool,
        resume: str = "",
    ) -> None:
        self.kind = kind
        self.key = key
        self.effect = effect
        self.standing = standing
        self.mark = ""
        """The effect's mark in the shard's hash: if the process ends while the effect is running, the mark identifies
        it as a suspect (see `suspects`). Empty if the effect is not tracked.
        """
        self.lane = (kind, job.lane(effect) if isinstance(job, Job) and job.lane else "")
        self.limit = job.limit if isinstance(job, Job) else None
        self.priority = job.priority(effect) if isinstance(job, Job) and job.priority else ()
        self.concurrent = 0
        self.cancelled = threading.Event()
        self.lapsed = False
        """Whether a standing effect was stopped because the lease lapsed; it is still wanted."""
        self._shared = shared
        self._place = f"{kind}/{key} {effect.subject}"
        self._job = job
        self._cause = cause
        self._over = threading.Lock()  # acquired once, by the first to end the slot: its worker or its time-out
        self._queued_at = time.monotonic()
        self._turn = threading.Lock()
        self._has_turn = False
        self._abandoned = False
        self._deadline: Timer | None = None
        self._started = 0.0
        self._sent_at = -shared.timing.progress_seconds
        self._stop: Callable[[], None] | None = None
        self._finish: Callable[[Report], None] | None = None
        self._resume = resume
        self.note = ""
        """What the effect has left for the same effect at the shard's next owner."""
        self._stopping = threading.Lock()

    # -- EffectContext -------------------------------------------------------------------------------------------
    @property
    def entity(self) -> str:
        return self.key

    @property
    def cause(self) -> str:
        return self._cause

    @property
    def resume(self) -> str:
        return self._resume

    @property
    def token(self) -> str:
        return self._shared.token

    def fence(self, point: str) -> None:
        """See `EffectContext.fence`."""
        if self.cancelled.is_set() or not self._shared.permit.valid():
            raise LostOwnership(point)
        self._shared.faults.point(f"effect/before {point} {self._place}")

    def done(self, point: str) -> None:
        """See `EffectContext.done`."""
        self._shared.faults.point(f"effect/after {point} {self._place}")

    def send(self, signal: Signal, *, cause: str = "") -> None:
        """See `EffectContext.send`. A one-shot's progress signal is dropped if the last one was sent less than
        `progress_seconds` ago.
        """
        now, least = time.monotonic(), self._shared.timing.progress_seconds
        if self.cancelled.is_set() or (not self.standing and now - self._sent_at < least):
            return
        self._sent_at = now
        self._shared.deliver(self._input(signal, cause or self._cause))

    # -- life cycle ----------------------------------------------------------------------------------------------
    def queued(self, queue: Queue) -> None:
        """See `OneShot.queued`."""
        self._shared.observer.effect_queued(self.kind, self.key, self._cause, queue)

    def launch(self) -> None:
        """Start the worker's thread and, for a one-shot, its time-out. An event-driven effect has no thread.

        If no thread can be started, the effect fails as if its worker had raised; the caller sees no exception.
        """
        self._has_turn = not self.standing
        if self._has_turn:
            waited = time.monotonic() - self._queued_at
            self._shared.observer.effect_waited(self.kind, self.key, self._cause, waited)
        if isinstance(self._job, EventDriven):
            self._start_event_driven(self._job)
            return
        try:
            self._start_thread(self._job)
        except Exception as error:  # noqa: BLE001 - as for a worker
            self._begin()
            self._failed(error)

    def cancel(self) -> None:
        """Cancel the effect, because it is no longer wanted."""
        self.cancelled.set()
        if self._stop_event_driven() or self.standing:
            return
        if self._shared.lanes.withdraw(self):
            waited = time.monotonic() - self._queued_at
            self._shared.observer.effect_withdrawn(self.kind, self.key, self._cause, waited)
            # The subject's next effect must not wait for the turn of a cancelled one.
            self._shared.deliver(SlotFreed(self))

    def finish(self) -> None:
        """Let the effect end soon, because its shard moves to another process. A one-shot that is running goes on; one
        that waits in its lane is withdrawn. A standing effect stops, if it can after the call that it is making.
        """
        if self._finish is not None:
            self._finish(self._report)
        elif self.standing:
            self.cancel()
        elif self._shared.lanes.withdraw(self):
            self.cancelled.set()
            self._shared.deliver(SlotFreed(self))

    def _report(self, note: str, over: bool) -> None:
        self.note = note
        if over:
            self.cancelled.set()
            self._end("cancelled", None, "")

    def lapse(self) -> None:
        """Stop a standing effect because the lease lapsed, from any thread. The host starts it again after a pause."""
        self.lapsed = True
        self.cancelled.set()
        self._stop_event_driven()

    def _stop_event_driven(self) -> bool:
        """Stop an event-driven effect that has begun; False if it is none, or has been stopped."""
        with self._stopping:
            stop, self._stop = self._stop, None
        if stop is None:
            return False
        stop()
        self._end("cancelled", None, "")
        return True

    def _start_thread(self, job: Job) -> None:
        """Start the time-out and the worker's thread. Raises RuntimeError if the system is out of threads or memory."""
        if not self.standing:
            bound = job.timeout_seconds
            seconds = bound(self.effect) if callable(bound) else bound
            self._deadline = self._shared.timers.after(seconds, self._expire)
        name = f"{self.kind}/{self.key} {type(self.effect).__name__}"
        threading.Thread(target=self._work, args=(job,), name=name, daemon=True).start()

    def _start_event_driven(self, job: EventDriven) -> None:
        self._begin()
        if self.cancelled.is_set():  # by a lapse: there is no lease to begin with
            self._end("cancelled", None, "")
            return
        try:
            begun = job.begin(self.effect, self, self._failed)
        except Exception as error:  # noqa: BLE001 - as for a worker
            self._failed(error)
            return
        with self._stopping:
            self._stop, self._finish = begun if isinstance(begun, Begun) else (begun, None)
        if self.cancelled.is_set():  # by a lapse, while it began
            self._stop_event_driven()

    def _failed(self, error: BaseException) -> None:
        self._end("failed", None, f"{type(error).__name__}: {error}")

    def _begin(self) -> None:
        self._started = time.monotonic()
        if self.standing:
            self._shared.permit.join(self)
        if not self._over.locked():  # else it timed out before its thread ran, and has been reported as ended
            name = type(self.effect).__name__
            self._shared.observer.effect_started(self.kind, name, began=self._started, standing=self.standing)

    def _work(self, job: Job) -> None:
        if self._cause:  # this thread ends with the worker: all its log lines are about the event that requested it
            structlog.contextvars.bind_contextvars(position=self._cause)
        self._begin()
        try:
            self._check_wanted()
            result = job.run(self.effect, self)
        except LostOwnership:
            self._end("cancelled" if self.cancelled.is_set() else "fenced", None, "")
        except Exception as error:  # noqa: BLE001 - the decider receives any exception of a worker
            self._failed(error)
        else:
            self._end("done", result, "worker ended without a result")

    def _check_wanted(self) -> None:
        if self.cancelled.is_set():  # while it waited for a thread
            raise LostOwnership(self.effect.intent)

    def _expire(self) -> None:
        self.cancelled.set()
        self._end("timed_out", None, "it did not end in time")

    def _end(self, outcome: Outcome, result: Signal | None, error: str) -> None:
        if not self._over.acquire(blocking=False):
            return
        if self._deadline is not None:
            self._deadline.cancel()
        if self.standing:
            self._shared.permit.leave(self)
        seconds = time.monotonic() - self._started if self._started else 0.0
        if not self.standing:
            self._report_duration(result, seconds)
            if self._abandoned or outcome in ("cancelled", "fenced", "timed_out"):
                self.leave()
        name = type(self.effect).__name__
        self._shared.observer.effect_done(
            self.kind, name, seconds, outcome, began=self._started, standing=self.standing
        )
        if outcome in ("cancelled", "fenced"):
            self._shared.deliver(SlotFreed(self))
        elif self.standing:
            self._shared.deliver(SlotFreed(self, "" if self.cancelled.is_set() else error, seconds))
        else:
            signal = result or self._failure(error, timed_out=outcome == "timed_out")
            self._shared.deliver(EffectInput(self, self._input(signal, self._cause)))

    def _report_duration(self, result: Signal | None, seconds: float) -> None:
        if result is None or not isinstance(self._job, Job) or self._job.measure is None:
            return
        name = self._job.measure(self.effect, result)
        if name and self._has_turn:
            self._shared.lanes.record_duration(self, name, seconds)

    def leave(self) -> None:
        """Stop occupying the lane, so that its next effect can start; idempotent. Call this only after the effects that
        follow from the result have joined the queue.
        """
        with self._turn:
            had, self._has_turn = self._has_turn, False
        if had:
            self._shared.lanes.release(self)

    def abandon(self) -> None:
        """Record that the host has stopped: the effect's result will not be processed."""
        self._abandoned = True
        if self._over.locked():
            self.leave()

    def failed(self, error: str) -> EffectInput:
        """Return this effect's failure as an input, to replace a result that the decider could not handle."""
        return EffectInput(self, self._input(self._failure(error, timed_out=False), self._cause))

    def _failure(self, error: str, *, timed_out: bool) -> EffectFailed:
        effect = self.effect
        return EffectFailed(
            effect=type(effect).__name__, subject=effect.subject, intent=effect.intent, error=error, timed_out=timed_out
        )

    def _input(self, signal: Signal, cause: str) -> Input:
        return Input("signal", START, (self.key,), signal, cause, f"{self.kind}.{type(signal).__name__}")
