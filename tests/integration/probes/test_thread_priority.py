"""The probe thread has a raised priority; the threads that it starts do not."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.probes.handlers import name_lookup
from chronolet.ports.pods.probes import ExecTarget
from tests.support.probes.probing import Probes, running
from tests.support.scratch import HANG_SECONDS


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_threads_started_by_the_loop_have_the_usual_priority(
    probes: Probes, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, found = niceness(), queue.Queue[int]()
    probes.prober.soon(lambda: found.put(niceness()))
    assert found.get(timeout=HANG_SECONDS) <= usual
    # Only root can reset a priority. Lower it, so that there is something to reset even if it could not be raised.
    if os.geteuid() == 0:
        probes.prober.soon(lambda: os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(usual + 3, 19)))
    make, look = runtime.create_exec, name_lookup._looked_up

    def made(container: str, command: tuple[str, ...], **more: Any) -> str:
        found.put(niceness())
        return make(container, command, **more)

    def looked(host: str, port: int, flags: int) -> object:
        if not flags:
            found.put(niceness())
        return look(host, port, flags)

    monkeypatch.setattr(runtime, "create_exec", made)
    monkeypatch.setattr(name_lookup, "_looked_up", looked)
    probes.ask(ExecTarget(container_id=running(runtime), command=("absent",)), 0.3)
    probes.get(1, host="localhost")
    assert [found.get(timeout=HANG_SECONDS), found.get(timeout=HANG_SECONDS)] == [usual, usual]
