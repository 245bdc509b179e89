"""All probing in one process: the loop, and lanes of threads for blocking probes.

Input: targets. Output: readings. Next: the prober's workers. Implements `ports.pods.probes.Prober`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import assert_never

import msgspec
from msgspec.structs import replace

from chronolet.adapters.probes.delays import Delays, Mark
from chronolet.adapters.probes.handlers.exec import clearing, exec_work
from chronolet.adapters.probes.handlers.grpc import health_work, prepare
from chronolet.adapters.probes.handlers.http import HttpAttempt
from chronolet.adapters.probes.handlers.name_lookup import NameLookup
from chronolet.adapters.probes.handlers.tcp import TcpAttempt
from chronolet.adapters.probes.pressure import Pressure
from chronolet.adapters.probes.scheduling.lanes import GRACE_SECONDS, Lane, ThreadAttempt
from chronolet.adapters.probes.scheduling.loop import Loop
from chronolet.ports.pods.probes import (
    Attempt,
    Cancellable,
    ExecTarget,
    GrpcTarget,
    HttpTarget,
    May,
    Reading,
    Target,
    TcpTarget,
)
from chronolet.ports.runtime.runtime import Runtime
from chronolet_schemas.prober import Shortage

EXEC_SLOTS = max(2 * (os.cpu_count() or 1), 4)
"""Maximum number of concurrent commands, excluding those that only wait: more than the machine can run would slow each
other down until healthy ones time out.
"""
GRPC_SLOTS = 32


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Time settings of all probing.

    `exec_slot_seconds`: a command that uses a processor for longer, or that the engine takes longer to start, gives up
    its slot. `grpc_slot_seconds`: the same for gRPC probes, which mostly wait for a server. `grace_seconds`: see
    `lanes.GRACE_SECONDS`. `stop_seconds`: how long `stop` waits for commands to be killed; the next process finds and
    kills those that are left.
    """

    exec_slot_seconds: float = 2.0
    grpc_slot_seconds: float = 0.25
    grace_seconds: float = GRACE_SECONDS
    stop_seconds: float = 0.6


DEFAULT_TIMING = Timing()


class Probing:
    """Implements `ports.pods.probes.Prober`."""

    def __init__(self, runtime: Runtime, exec_slots: int = EXEC_SLOTS, *, timing: Timing = DEFAULT_TIMING) -> None:
        self._runtime = runtime
        self._stop_seconds = timing.stop_seconds
        self._loop = Loop()
        self._names = NameLookup(self._loop)
        self._pressure = Pressure()
        self._delays = Delays(self._loop, self._pressure)
        self._execs = self._lane("exec probe", exec_slots, timing.exec_slot_seconds, timing)
        self._grpcs = self._lane("grpc probe", GRPC_SLOTS, timing.grpc_slot_seconds, timing)

    def _lane(self, name: str, slots: int, slot_seconds: float, timing: Timing) -> Lane:
        return Lane(self._loop, name, slots, slot_seconds, grace_seconds=timing.grace_seconds)

    def soon(self, action: Callable[[], object]) -> None:
        self._loop.soon(action)

    def at(self, when: float, action: Callable[[], None]) -> Cancellable:
        return self._loop.at(when, action)

    def begin(
        self,
        target: Target,
        timeout_seconds: float,
        done: Callable[[Reading], None],
        may: May,
        *,
        probe: str = "",
        first: bool = False,
    ) -> Attempt:
        self._delays.wake()
        began = _Began(self._delays.mark())

        def ended(reading: Reading) -> None:
            done(replace(reading, delay=self._delays.since(began.mark, reading, timeout_seconds)))

        match target:
            case HttpTarget():
                return HttpAttempt(self._loop, self._names, target, timeout_seconds, ended, may=may)
            case TcpTarget():
                return TcpAttempt(self._loop, self._names, target, timeout_seconds, ended, may=may)
            case GrpcTarget():
                lane, work, before = self._grpcs, health_work(target, timeout_seconds), prepare
            case ExecTarget():
                lane, work = self._execs, exec_work(self._runtime, target, timeout_seconds, probe)
                before = clearing(self._runtime, target, probe, may) if first else _nothing
            case _:
                assert_never(target)

        def begin() -> None:
            before()
            began.mark = self._delays.mark()

        attempt = ThreadAttempt(lane, self._loop, work, timeout_seconds, ended, may=may, probe=probe, before=begin)
        lane.submit(attempt)
        return attempt

    def short_of(self) -> tuple[Shortage, ...]:
        return self._delays.short_of()

    def stop(self) -> None:
        until = time.monotonic() + self._stop_seconds
        ended = threading.Event()
        with contextlib.suppress(RuntimeError):  # the thread cannot be started, so nothing is running
            for end in (self._execs.end, self._grpcs.end, ended.set):
                self._loop.soon(end)
            ended.wait(self._stop_seconds)
        self._loop.stop()
        self._pressure.close()
        self._execs.join(until)
        self._grpcs.join(until)


class _Began:
    """When an attempt began. For a queued attempt it is updated when the attempt leaves the queue."""

    def __init__(self, mark: Mark) -> None:
        self.mark = mark


def _nothing() -> None: ...
