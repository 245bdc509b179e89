"""A process names those of its threads that no longer run. An outage of the server stalls none of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chronolet.kernel.hosting import process as processes
from chronolet.kernel.hosting.process import Process
from tests.kernel import chore
from tests.kernel.rig import Line, Rig
from tests.support.scratch import wait_until


@pytest.fixture(autouse=True)
def frequent_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "BEAT_SECONDS", 0.01)


@contextmanager
def blocked(process: Process) -> Iterator[None]:
    """Block the timer thread during the block, as a callback that never returns would."""
    released, entered = threading.Event(), threading.Event()

    def block() -> None:
        entered.set()
        released.wait()

    process._timers.after(0.0, block)
    entered.wait()
    try:
        yield
    finally:
        released.set()


def test_a_blocked_timer_thread_is_named(rig: Rig) -> None:
    process = rig.process(chore.kind())
    assert process.stalled_threads(60) == ()
    with blocked(process):
        wait_until(lambda: process.stalled_threads(0.5) == ("timers",), "the timers to be named")
    wait_until(lambda: process.stalled_threads(0.5) == (), "the timers to run again")


def test_an_outage_of_the_server_stalls_nothing(rig: Rig) -> None:
    line = Line()
    process = rig.process(chore.kind(), line=line)
    line.down = True
    renewals = line.calls.count("renew")
    wait_until(lambda: line.calls.count("renew") > renewals + 3, "renewals that fail")
    assert process.lease.idle_seconds() < 60
    assert process.stalled_threads(60) == ()


def test_a_lease_thread_that_ended_is_named(rig: Rig) -> None:
    process = rig.process(chore.kind())
    process.lease.stop()
    wait_until(lambda: process.stalled_threads(0.5) == ("lease",), "the lease to be named")
