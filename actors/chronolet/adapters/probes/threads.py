"""Attempts that block: each on a thread of its own, in each lane so many at once, the rest in turn.

Comes in: what to do. Goes out: its `Reading` on the loop's thread, in time even where the thread hangs. Next: `execs`,
`health`. A thread lives as long as its attempt and what that leaves to tidy up.

    waiting -> at work, in a place -> only waiting for an answer, out of it -> told -> tidied up, ended

A place is for what costs the machine something: who only waits for somebody else gives it back, so that attempts that
hang hold nobody up. Every asker has one thread at most, so there are never more than there are askers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import structlog

from chronolet.adapters.probes.loop import Loop, Timer
from chronolet.adapters.probes.niceness import go_with_all
from chronolet.adapters.probes.turns import Turns
from chronolet.ports.pods.probes import May, Reading, Result
from chronolet.rules.names.durations import go_duration

log = structlog.get_logger("chronolet.probes")


class Said(NamedTuple):
    """What an attempt came to; see `Reading`."""

    result: Result
    output: str
    code: int | None = None
    timed_out: bool = False
    engine_seconds: float = 0.0


class Asking(Protocol):
    """An attempt, as its work sees it. From the work's thread."""

    @property
    def cancelled(self) -> threading.Event:
        """Set once nobody waits for it any more."""

    @property
    def may(self) -> May:
        """To be asked before every call."""

    def tell(self, said: Said) -> None:
        """Its outcome, once."""

    def asks_engine(self) -> None:
        """The engine is asked whether the command still runs: before it answers, that is not known."""

    def if_cancelled(self, end: Callable[[], object]) -> None:
        """Call it when nobody waits any more, on whatever thread; at once if that is so already. Perhaps twice."""

    def begun(self, late: str) -> None:
        """The container is asked: from now on it is its failure, in these words, if there is no answer in time."""

    def waits(self) -> None:
        """It costs the machine nothing any more, however long it goes on: others may have its place."""


Work = Callable[[Asking], None]
"""Runs an attempt: until it is cancelled, tells its outcome once, and tidies up before it returns."""


GRACE_SECONDS = 0.1
"""What an attempt may take beyond its time to say by itself, in better words, that this was too late."""


class Lane:
    """Used on the loop's thread."""

    def __init__(self, loop: Loop, name: str, at_once: int, longest_seconds: float) -> None:
        """No attempt keeps its place for longer than `longest_seconds`, whatever it does there."""
        self._loop = loop
        self._name = name
        self._at_once = at_once
        self._longest = longest_seconds
        self._places: dict[ThreadAttempt, tuple[float, Timer]] = {}
        self._threads: dict[ThreadAttempt, threading.Thread] = {}
        self._askers: set[str] = set()
        self._turns: Turns[ThreadAttempt] = Turns()

    def submit(self, attempt: ThreadAttempt) -> None:
        """Begin it, now or in its turn: its time begins with it."""
        self._turns.add(attempt.who, attempt)
        self._fill()

    def drop(self, attempt: ThreadAttempt) -> None:
        """One that waits is not wanted any more."""
        self._turns.drop(attempt)

    def give_back(self, attempt: ThreadAttempt) -> None:
        """Its place is free, if it has one still."""
        place = self._places.pop(attempt, None)
        if place is not None:
            since, longest = place
            longest.cancel()
            self._turns.used(attempt.who, time.monotonic() - since)
            self._fill()

    def left(self, attempt: ThreadAttempt) -> None:
        """Its thread has ended."""
        self._threads.pop(attempt, None)
        self._askers.discard(attempt.who)
        self.give_back(attempt)
        self._fill()

    def end(self) -> None:
        """Nobody waits for any of them, and none begins any more."""
        self._at_once = 0
        for attempt in (*self._turns.clear(), *self._threads):
            attempt.cancel()

    def join(self, until: float) -> None:
        """Wait for their threads, from any thread, after `end`."""
        for attempt, thread in list(self._threads.items()):
            thread.join(max(until - time.monotonic(), 0.0))
            if thread.is_alive():
                log.warning("a probe's thread is left behind", thread=self._name, who=attempt.who)

    def _fill(self) -> None:
        while len(self._places) < self._at_once and (attempt := self._turns.take(self._may_begin)) is not None:
            self._launch(attempt)
        if not self._places and not self._turns:
            self._turns.rest()

    def _may_begin(self, who: str) -> bool:
        return who not in self._askers

    def _launch(self, attempt: ThreadAttempt) -> None:
        now = time.monotonic()
        self._places[attempt] = now, self._loop.at(now + self._longest, lambda: self.give_back(attempt))
        if attempt.who:
            self._askers.add(attempt.who)
        thread = attempt.launch(self._name)
        if thread is None:
            self._loop.soon(lambda: self.left(attempt))
        else:
            self._threads[attempt] = thread


class ThreadAttempt:
    """`ports.probes.Attempt`."""

    def __init__(
        self,
        lane: Lane,
        loop: Loop,
        work: Work,
        timeout_seconds: float,
        done: Callable[[Reading], None],
        *,
        may: May,
        who: str,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """`before` is called on its thread before its time begins."""
        self._lane = lane
        self._loop = loop
        self._work = work
        self._before = before
        self.may = may
        self.who = who
        self.began = False
        self._timeout = timeout_seconds
        self._done: Callable[[Reading], None] | None = done
        self._started = 0.0
        self._deadline: Timer | None = None
        self._late = ""
        self._asks_engine = False
        self._end: Callable[[], object] | None = None
        self._said: Reading | None = None
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        """See `ports.probes.Attempt`. Its thread ends as soon as it can."""
        self._done = None
        self.cancelled.set()
        if self._end is not None:
            self._end()
        if not self.began:
            self._lane.drop(self)
        if self._deadline is not None:
            self._deadline.cancel()

    def launch(self, name: str) -> threading.Thread | None:
        """By the lane, when it is this one's turn. None if there was no thread to be had."""
        self.began = True
        self._started = time.monotonic()
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads, or no memory for one: that is not the container's fault
            self.tell(Said("error", str(error)))
            return None
        return thread

    def _run(self) -> None:
        try:
            go_with_all()
            self._before()
            self._started = time.monotonic()
            self._loop.soon(self._set_deadline)
            self._work(self)
        except Exception as error:
            self.tell(Said("error", f"{type(error).__name__}: {error}"))
            raise
        finally:
            self._loop.soon(lambda: self._lane.left(self))

    def waits(self) -> None:
        """See `Asking`."""
        self._loop.soon(lambda: self._lane.give_back(self))

    def _set_deadline(self) -> None:
        if self._done is not None:
            self._deadline = self._loop.at(self._started + self._timeout + GRACE_SECONDS, self._expire)

    def tell(self, said: Said) -> None:
        """See `Asking`."""
        reading = self._reading(said)
        self._said = reading
        self._loop.soon(lambda: self._told(reading))

    def asks_engine(self) -> None:
        """See `Asking`."""
        self._asks_engine = True

    def if_cancelled(self, end: Callable[[], object]) -> None:
        """See `Asking`."""
        self._end = end
        if self.cancelled.is_set():
            end()

    def begun(self, late: str) -> None:
        """See `Asking`."""
        self._late = late

    def _reading(self, said: Said) -> Reading:
        return Reading(started=self._started, seconds=time.monotonic() - self._started, **said._asdict())

    def _expire(self) -> None:
        """The thread hangs in a call that is not bounded by the attempt's time; or told, and the loop is late."""
        engine_seconds = self._timeout if self._asks_engine else 0.0
        late = Said("failure", self._late, timed_out=True, engine_seconds=engine_seconds)
        unasked = Said("error", f"it did not end within {go_duration(round(self._timeout * 1000))}")
        self._told(self._said or self._reading(late if self._late else unasked))

    def _told(self, reading: Reading) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done(reading)
