"""Attempts that block, each on its own thread. Per lane there is a concurrency limit and a fair queue for waiting
attempts.

Input: work to do. Output: its `Reading` on the loop's thread, in time even if the work's thread hangs. Next:
`handlers.exec`, `handlers.grpc`. A thread exists for as long as the attempt and its clean-up take.

    queued -> working, holds a slot -> only waiting for a response, slot released -> reported -> cleaned up, ended

Slots limit work that uses the machine's resources: an attempt that only waits for a response releases its slot, so that
hanging attempts do not block others. Each probe has at most one thread, so there are never more threads than probes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import structlog

from chronolet.adapters.probes.scheduling.fair_queue import FairQueue
from chronolet.adapters.probes.scheduling.loop import Loop, LoopTimer
from chronolet.adapters.probes.scheduling.thread_priority import reset_priority
from chronolet.ports.pods.probes import May, Reading, Result
from chronolet.rules.names.durations import go_duration

log = structlog.get_logger("chronolet.probes")


class Outcome(NamedTuple):
    """The outcome of an attempt; see `Reading`."""

    result: Result
    output: str
    code: int | None = None
    timed_out: bool = False
    engine_seconds: float = 0.0


class AttemptHandle(Protocol):
    """An attempt as its work sees it, on the work's thread."""

    @property
    def cancelled(self) -> threading.Event:
        """Set once the outcome is no longer awaited."""

    @property
    def may(self) -> May:
        """Returns whether this process may still act. Must be called before every call to the outside world."""

    def report(self, outcome: Outcome) -> None:
        """Report the outcome. Must be called exactly once."""

    def asks_engine(self) -> None:
        """Report that the engine is being asked whether the command is still running: a time-out before it replies is
        the engine's delay (`Outcome.engine_seconds`).
        """

    def if_cancelled(self, end: Callable[[], object]) -> None:
        """Call `end` when the attempt is cancelled, or immediately if it already is. `end` may be called on any thread,
        and twice.
        """

    def begun(self, late: str) -> None:
        """Report that from now on a time-out is the container's failure, with the text `late`. Before this call, it is
        an error: the probe could not be made.
        """

    def waits(self) -> None:
        """Release the slot: from now on the attempt only waits and uses none of the machine's resources."""


Work = Callable[[AttemptHandle], None]
"""Carries out an attempt unless it is cancelled, reports its outcome once, and cleans up before it returns."""


GRACE_SECONDS = 0.1
"""Extra time in which an attempt may report its own time-out, with a more specific text."""


class Lane:
    """A queue of attempts with a concurrency limit. All methods except `join` must be called on the loop's thread."""

    def __init__(
        self, loop: Loop, name: str, limit: int, longest_seconds: float, *, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        """`limit`: number of slots. `longest_seconds`: maximum time for which an attempt holds a slot."""
        self.grace_seconds = grace_seconds
        self._loop = loop
        self._name = name
        self._limit = limit
        self._longest = longest_seconds
        self._slots: dict[ThreadAttempt, tuple[float, LoopTimer]] = {}
        self._threads: dict[ThreadAttempt, threading.Thread] = {}
        self._probing: set[str] = set()
        self._queue: FairQueue[ThreadAttempt] = FairQueue()

    def submit(self, attempt: ThreadAttempt) -> None:
        """Start an attempt, immediately or when its turn comes. Its time-out starts only then."""
        self._queue.add(attempt.probe, attempt)
        self._fill()

    def drop(self, attempt: ThreadAttempt) -> None:
        """Remove an attempt from the queue."""
        self._queue.drop(attempt)

    def release_slot(self, attempt: ThreadAttempt) -> None:
        """Release the attempt's slot if it still holds one."""
        slot = self._slots.pop(attempt, None)
        if slot is not None:
            since, longest = slot
            longest.cancel()
            self._queue.used(attempt.probe, time.monotonic() - since)
            self._fill()

    def thread_ended(self, attempt: ThreadAttempt) -> None:
        """Handle the end of the attempt's thread."""
        self._threads.pop(attempt, None)
        self._probing.discard(attempt.probe)
        self.release_slot(attempt)
        self._fill()

    def end(self) -> None:
        """Cancel all attempts, and start no more."""
        self._limit = 0
        for attempt in (*self._queue.clear(), *self._threads):
            attempt.cancel()

    def join(self, until: float) -> None:
        """Wait for the attempts' threads to end, until the deadline `until`. Call it after `end`; any thread may call
        it.
        """
        for attempt, thread in list(self._threads.items()):
            thread.join(max(until - time.monotonic(), 0.0))
            if thread.is_alive():
                log.warning("probe thread still running after stop", thread=self._name, probe=attempt.probe)

    def _fill(self) -> None:
        while len(self._slots) < self._limit and (attempt := self._queue.take(self._may_begin)) is not None:
            self._launch(attempt)
        if not self._slots and not self._queue:
            self._queue.rest()

    def _may_begin(self, probe: str) -> bool:
        return probe not in self._probing

    def _launch(self, attempt: ThreadAttempt) -> None:
        now = time.monotonic()
        self._slots[attempt] = now, self._loop.at(now + self._longest, lambda: self.release_slot(attempt))
        if attempt.probe:
            self._probing.add(attempt.probe)
        thread = attempt.launch(self._name)
        if thread is None:
            self._loop.soon(lambda: self.thread_ended(attempt))
        else:
            self._threads[attempt] = thread


class ThreadAttempt:
    """Implements `ports.pods.probes.Attempt` on a thread of its own."""

    def __init__(
        self,
        lane: Lane,
        loop: Loop,
        work: Work,
        timeout_seconds: float,
        done: Callable[[Reading], None],
        *,
        may: May,
        probe: str,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """`before` is called on the attempt's thread before the time-out starts."""
        self._lane = lane
        self._loop = loop
        self._work = work
        self._before = before
        self.may = may
        self.probe = probe
        self.began = False
        self._timeout = timeout_seconds
        self._done: Callable[[Reading], None] | None = done
        self._started = 0.0
        self._deadline: LoopTimer | None = None
        self._late = ""
        self._asks_engine = False
        self._end: Callable[[], object] | None = None
        self._reading_reported: Reading | None = None
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        """See `ports.pods.probes.Attempt`. The attempt's thread ends as soon as it can."""
        self._done = None
        self.cancelled.set()
        if self._end is not None:
            self._end()
        if not self.began:
            self._lane.drop(self)
        if self._deadline is not None:
            self._deadline.cancel()

    def launch(self, name: str) -> threading.Thread | None:
        """Start the thread and return it; called by the lane. None if no thread could be started."""
        self.began = True
        self._started = time.monotonic()
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # out of threads or memory: not the container's fault
            self.report(Outcome("error", str(error)))
            return None
        return thread

    def _run(self) -> None:
        try:
            reset_priority()
            self._before()
            self._started = time.monotonic()
            self._loop.soon(self._set_deadline)
            self._work(self)
        except Exception as error:
            self.report(Outcome("error", f"{type(error).__name__}: {error}"))
            raise
        finally:
            self._loop.soon(lambda: self._lane.thread_ended(self))

    def waits(self) -> None:
        """See `AttemptHandle`."""
        self._loop.soon(lambda: self._lane.release_slot(self))

    def _set_deadline(self) -> None:
        if self._done is not None:
            self._deadline = self._loop.at(self._started + self._timeout + self._lane.grace_seconds, self._expire)

    def report(self, outcome: Outcome) -> None:
        """See `AttemptHandle`."""
        reading = self._reading(outcome)
        self._reading_reported = reading
        self._loop.soon(lambda: self._finish(reading))

    def asks_engine(self) -> None:
        """See `AttemptHandle`."""
        self._asks_engine = True

    def if_cancelled(self, end: Callable[[], object]) -> None:
        """See `AttemptHandle`."""
        self._end = end
        if self.cancelled.is_set():
            end()

    def begun(self, late: str) -> None:
        """See `AttemptHandle`."""
        self._late = late

    def _reading(self, outcome: Outcome) -> Reading:
        return Reading(started=self._started, seconds=time.monotonic() - self._started, **outcome._asdict())

    def _expire(self) -> None:
        """End the attempt when its time is up: either its thread hangs in a call without a time-out, or it has reported
        an outcome and the loop is late.
        """
        engine_seconds = self._timeout if self._asks_engine else 0.0
        late = Outcome("failure", self._late, timed_out=True, engine_seconds=engine_seconds)
        unasked = Outcome("error", f"it did not end within {go_duration(round(self._timeout * 1000))}")
        self._finish(self._reading_reported or self._reading(late if self._late else unasked))

    def _finish(self, reading: Reading) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done(reading)
