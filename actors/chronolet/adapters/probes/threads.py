"""Attempts that block: each on a thread of its own, in each lane so many at once, the rest in order.

Comes in: what to do. Goes out: its `Reading` on the loop's thread, in time even where the thread hangs. Next: `execs`,
`health`. A thread lives as long as its attempt and what that leaves to tidy up, and keeps its place in the lane.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from chronolet.adapters.probes.loop import Loop, Timer
from chronolet.adapters.probes.niceness import go_with_all
from chronolet.ports.probes import May, Reading, Result
from chronolet.rules.durations import go_duration


class Asking(Protocol):
    """An attempt, as its work sees it. From the work's thread."""

    @property
    def cancelled(self) -> threading.Event:
        """Set once nobody waits for it any more."""

    @property
    def may(self) -> May:
        """To be asked before every call."""

    def tell(self, result: Result, output: str, code: int | None = None) -> None:
        """Its outcome, once."""

    def if_cancelled(self, end: Callable[[], object]) -> None:
        """Call it when nobody waits any more, on whatever thread; at once if that is so already. Perhaps twice."""

    def begun(self, late: str) -> None:
        """The container is asked: from now on it is its failure, in these words, if there is no answer in time."""


Work = Callable[[Asking], None]
"""Runs an attempt: until it is cancelled, tells its outcome once, and tidies up before it returns."""


GRACE_SECONDS = 0.1
"""What an attempt may take beyond its time to say by itself, in better words, that this was too late."""


class Lane:
    """Used on the loop's thread."""

    def __init__(self, loop: Loop, name: str, at_once: int, prepare: Callable[[], None] = lambda: None) -> None:
        """`prepare` is called by each thread before the time of its attempt begins."""
        self._loop = loop
        self._name = name
        self.prepare = prepare
        self._at_once = at_once
        self._at_work = 0
        self._waiting: deque[ThreadAttempt] = deque()

    def submit(self, work: Work, timeout_seconds: float, done: Callable[[Reading], None], may: May) -> ThreadAttempt:
        """Begin it, now or in its turn: its time begins with it."""
        attempt = ThreadAttempt(self, self._loop, work, timeout_seconds, done, may=may)
        if self._at_work < self._at_once:
            self._launch(attempt)
        else:
            self._waiting.append(attempt)
        return attempt

    def drop(self, attempt: ThreadAttempt) -> None:
        """One that waits is not wanted any more."""
        if attempt in self._waiting:
            self._waiting.remove(attempt)

    def left(self) -> None:
        """A thread has ended."""
        self._at_work -= 1
        if self._waiting:
            self._launch(self._waiting.popleft())

    def _launch(self, attempt: ThreadAttempt) -> None:
        self._at_work += 1
        attempt.launch(self._name)


class ThreadAttempt:
    """`ports.probes.Attempt`."""

    def __init__(
        self, lane: Lane, loop: Loop, work: Work, timeout_seconds: float, done: Callable[[Reading], None], *, may: May
    ) -> None:
        self._lane = lane
        self._loop = loop
        self._work = work
        self.may = may
        self._timeout = timeout_seconds
        self._done: Callable[[Reading], None] | None = done
        self._started = 0.0
        self._deadline: Timer | None = None
        self._late = ""
        self._end: Callable[[], object] | None = None
        self._said: Reading | None = None
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        """See `ports.probes.Attempt`. Its thread ends as soon as it can."""
        self._done = None
        self.cancelled.set()
        if self._end is not None:
            self._end()
        self._lane.drop(self)
        if self._deadline is not None:
            self._deadline.cancel()

    def launch(self, name: str) -> None:
        """By the lane, when it is this one's turn."""
        self._started = time.monotonic()
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except RuntimeError as error:  # no more threads, or no memory for one: that is not the container's fault
            self.tell("error", str(error))
            self._loop.soon(self._lane.left)

    def _run(self) -> None:
        try:
            go_with_all()
            self._lane.prepare()
            self._started = time.monotonic()
            self._loop.soon(self._set_deadline)
            self._work(self)
        except Exception as error:
            self.tell("error", f"{type(error).__name__}: {error}")
            raise
        finally:
            self._loop.soon(self._lane.left)

    def _set_deadline(self) -> None:
        if self._done is not None:
            self._deadline = self._loop.at(self._started + self._timeout + GRACE_SECONDS, self._expire)

    def tell(self, result: Result, output: str, code: int | None = None) -> None:
        """See `Asking`."""
        self._said = reading = self._reading(result, output, code)
        self._loop.soon(lambda: self._told(reading))

    def if_cancelled(self, end: Callable[[], object]) -> None:
        """See `Asking`."""
        self._end = end
        if self.cancelled.is_set():
            end()

    def begun(self, late: str) -> None:
        """See `Asking`."""
        self._late = late

    def _reading(self, result: Result, output: str, code: int | None) -> Reading:
        seconds = time.monotonic() - self._started
        return Reading(result=result, output=output, code=code, started=self._started, seconds=seconds)

    def _expire(self) -> None:
        """The thread hangs in a call that is not bounded by the attempt's time; or told, and the loop is late."""
        late = self._reading("failure", self._late, None)
        unasked = f"it did not end within {go_duration(round(self._timeout * 1000))}"
        self._told(self._said or (late if self._late else self._reading("error", unasked, None)))

    def _told(self, reading: Reading) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done(reading)
