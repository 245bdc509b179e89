"""All probing of one process: the loop, and the lanes beside it for what would block it.

Comes in: targets. Goes out: readings. Next: the prober's workers. Implements `ports.probes.Prober`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import assert_never

from chronolet.adapters.probes.execs import exec_work
from chronolet.adapters.probes.health import health_work, prepare
from chronolet.adapters.probes.http import HttpAttempt
from chronolet.adapters.probes.loop import Loop
from chronolet.adapters.probes.names import Names
from chronolet.adapters.probes.tcp import TcpAttempt
from chronolet.adapters.probes.threads import Lane
from chronolet.ports.probes import Attempt, ExecTarget, GrpcTarget, HttpTarget, May, Reading, Target, TcpTarget, Timer
from chronolet.ports.runtime import Runtime

EXECS_AT_ONCE = max(2 * (os.cpu_count() or 1), 4)
"""More than the machine can run make each of them slow, until healthy ones run out of time: the others wait."""
GRPCS_AT_ONCE = 32


class Probing:
    """`ports.probes.Prober`."""

    def __init__(self, runtime: Runtime, execs_at_once: int = EXECS_AT_ONCE) -> None:
        self._runtime = runtime
        self._loop = Loop()
        self._names = Names(self._loop)
        self._execs = Lane(self._loop, "exec probe", execs_at_once)
        self._grpcs = Lane(self._loop, "grpc probe", GRPCS_AT_ONCE, prepare)

    def soon(self, action: Callable[[], object]) -> None:
        self._loop.soon(action)

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        return self._loop.at(when, action)

    def begin(self, target: Target, timeout_seconds: float, done: Callable[[Reading], None], may: May) -> Attempt:
        match target:
            case HttpTarget():
                return HttpAttempt(self._loop, self._names, target, timeout_seconds, done, may=may)
            case TcpTarget():
                return TcpAttempt(self._loop, self._names, target, timeout_seconds, done, may=may)
            case GrpcTarget():
                return self._grpcs.submit(health_work(target, timeout_seconds), timeout_seconds, done, may)
            case ExecTarget():
                work = exec_work(self._runtime, target, timeout_seconds)
                return self._execs.submit(work, timeout_seconds, done, may)
            case _:
                assert_never(target)

    def stop(self) -> None:
        self._loop.stop()
