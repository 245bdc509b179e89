"""What every attempt on the loop shares: it ends once, within its time, and gives back what it holds.

Comes in: a time, whom to tell. Goes out: one `Reading`. Next: `http`, `tcp`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from chronolet.adapters.probes.loop import Loop
from chronolet.ports.pods.probes import MAY_NOT, May, Reading, Result

Done = Callable[[Reading], None]


class LoopAttempt(ABC):
    """`ports.probes.Attempt`, all of it on the loop's thread."""

    began = True

    def __init__(self, loop: Loop, timeout_seconds: float, done: Done, may: May) -> None:
        self._loop = loop
        self._may = may
        self._done: Done | None = done
        self._started = time.monotonic()
        self._deadline = loop.at(self._started + timeout_seconds, self._expire)

    def cancel(self) -> None:
        """See `ports.probes.Attempt`."""
        self._done = None
        self._deadline.cancel()
        self._let_go()

    def _end(self, result: Result, output: str, code: int | None = None, *, timed_out: bool = False) -> None:
        done = self._done
        if done is None:
            return
        self.cancel()
        seconds = time.monotonic() - self._started
        done(
            Reading(
                result=result, output=output, code=code, started=self._started, seconds=seconds, timed_out=timed_out
            )
        )

    def _is_over(self) -> bool:
        """To be asked before each call: whether there may be none."""
        if self._may():
            return False
        self._end("error", MAY_NOT)
        return True

    def _expire(self) -> None:
        self._end("failure", self._said_late(), timed_out=True)

    @abstractmethod
    def _said_late(self) -> str:
        """What is said when the time is over."""

    @abstractmethod
    def _let_go(self) -> None:
        """Give back sockets. May be called twice."""
