"""A prober for the product's own ProbeWorker whose attempts end immediately, with the outcomes of a case.

Input: the outcomes of the attempts. Output: the number of attempts, and the outcome that the worker sent. Next:
`handlers`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from chronolet.ports.pods.probes import Reading, Result
from chronolet.prober.signals import ProbeOutcome
from chronolet.prober.wanted import RunProbe
from chronolet.prober.workers.dependencies import ProberDependencies
from chronolet.prober.workers.probe_worker import begin
from chronolet_schemas.podspec import Probe, TCPSocketAction
from chronolet_schemas.prober import Outcome, RawResult, Shortage
from tests.conformance.drivers.context import Context
from tests.support.probes.scripted_attempts import Over, ScriptedAttempts

_PERIOD = 3_600_000


class ScriptedProber(ScriptedAttempts):
    """A prober that runs in the caller's thread."""

    def __init__(self, outcomes: Sequence[Result], *, protects: bool = False) -> None:
        """`protects`: turn overload protection on, which must change nothing here because nothing is late."""
        self._unjudged_limit = 60_000 if protects else None
        self._outcomes = list(outcomes)
        self._queue: deque[Callable[[], object]] = deque()
        self.attempts = 0

    def outcome(self) -> ProbeOutcome:
        """Run a worker until its first tick has ended, and return the outcome that it sends."""
        context = Context()
        effect = RunProbe(
            subject="worker",
            intent="c-1/0/0",
            pod="default/web",
            uid="u1",
            container="app",
            probe="Readiness",
            attempt=0,
            id="c-1",
            definition=Probe(tcp_socket=TCPSocketAction(port=1), timeout_seconds=60),
            period_milliseconds=_PERIOD,
            ip="127.0.0.1",
            from_at=0,
            anchored=False,
        )
        deps = ProberDependencies(
            self, self, self, began=time.monotonic() - _PERIOD, unjudged_limit=self._unjudged_limit
        )
        end = begin(deps)(effect, context, _raise).stop
        self._run()
        end()
        self._run()
        (sent,) = context.sent
        assert isinstance(sent, ProbeOutcome)
        return sent

    def _run(self) -> None:
        while self._queue:
            self._queue.popleft()()

    # -- the prober --------------------------------------------------------------------------------------------------

    def soon(self, action: Callable[[], object]) -> None:
        self._queue.append(action)

    def at(self, when: float, action: Callable[[], None]) -> Over:
        """Run only the first tick; the next one is an hour away."""
        if when <= time.monotonic() + 1:
            self.soon(action)
        return Over()

    def reading(self, timeout_seconds: float) -> Reading:
        del timeout_seconds
        result = self._outcomes[self.attempts]
        self.attempts += 1
        return Reading(
            result=result,
            output="as the case says",
            started=time.monotonic(),
            seconds=0.0,
            timed_out=result == "failure",
        )

    def short_of(self) -> tuple[Shortage, ...]:
        return ()

    def stop(self) -> None: ...

    # -- results and metrics -----------------------------------------------------------------------------------------

    def add(self, result: RawResult) -> None: ...

    def begins(self, probe: RunProbe) -> None: ...

    def began(self, probe: RunProbe, late_seconds: float) -> None: ...

    def probed(self, probe: RunProbe, result: Outcome, seconds: float) -> None: ...


def _raise(error: BaseException) -> Any:
    raise error
