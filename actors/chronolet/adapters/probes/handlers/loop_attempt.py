"""Base class of the attempts that run on the loop: each ends exactly once, at its time-out at the latest, and releases
its resources.

Input: a time-out, a callback. Output: one `Reading`. Next: `http`, `tcp`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from chronolet.adapters.probes.scheduling.loop import Loop
from chronolet.ports.pods.probes import MAY_NOT, May, Reading, Result

Done = Callable[[Reading], None]


class LoopAttempt(ABC):
    """Implements `ports.pods.probes.Attempt`, entirely on the loop's thread."""

    began = True

    def __init__(self, loop: Loop, timeout_seconds: float, done: Done, may: May) -> None:
        self._loop = loop
        self._may = may
        self._done: Done | None = done
        self._started = time.monotonic()
        self._deadline = loop.at(self._started + timeout_seconds, self._expire)

    def cancel(self) -> None:
        """See `ports.pods.probes.Attempt`."""
        self._done = None
        self._deadline.cancel()
        self._release()

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
        """Whether the attempt must not continue. Called before each call to a pod; ends the attempt if this process may
        no longer act.
        """
        if self._may():
            return False
        self._end("error", MAY_NOT)
        return True

    def _expire(self) -> None:
        self._end("failure", self._late_text(), timed_out=True)

    @abstractmethod
    def _late_text(self) -> str:
        """Return the output of a timed-out attempt."""

    @abstractmethod
    def _release(self) -> None:
        """Release sockets. May be called twice."""
