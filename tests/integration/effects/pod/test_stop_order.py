"""The order of stops and clean-ups (containers, sandboxes, clean-ups), and when a worker stops waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from chronolet.kernel.kind import Worker
from chronolet.pod.workers.stops.order import MOST_SANDBOXES, StopOrder
from tests.support.scratch import HANG_SECONDS, wait_until

CONTEXT: Any = None


class Effect(NamedTuple):
    """The part of an effect on which the order depends."""

    pod: str = "other"


class Stop:
    """A stop that lasts until it is released."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, _effect: Any, _context: Any) -> None:
        self.begun.set()
        assert self.released.wait(HANG_SECONDS)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def under_way(threads: ThreadPoolExecutor, worker: Worker, stop: Stop) -> Future[Any]:
    future = threads.submit(worker, Effect("own"), CONTEXT)
    assert stop.begun.wait(HANG_SECONDS)
    return future


def waiting(first: StopOrder, count: int) -> None:
    wait_until(lambda: len(first._changed._waiters) == count, "the waiting workers")  # type: ignore[attr-defined]


def patient() -> StopOrder:
    return StopOrder(HANG_SECONDS, HANG_SECONDS)


def test_a_clean_up_waits_for_the_last_container(threads: ThreadPoolExecutor) -> None:
    first, stops, steps = patient(), [Stop(), Stop()], list[str]()
    running = [under_way(threads, first.containers(stop), stop) for stop in stops]
    last = threads.submit(first.cleanups(lambda *_: steps.append("done")), Effect(), CONTEXT)
    waiting(first, 1)
    stops[0].released.set()
    running[0].result(HANG_SECONDS)
    waiting(first, 1)
    assert steps == []
    stops[1].released.set()
    last.result(HANG_SECONDS)
    assert steps == ["done"]


def test_sandbox_stops_are_limited_during_container_stops(threads: ThreadPoolExecutor) -> None:
    first, container, sandboxes = patient(), Stop(), [Stop() for _ in range(MOST_SANDBOXES)]
    under_way(threads, first.containers(container), container)
    for number, sandbox in enumerate(sandboxes):
        threads.submit(first.sandboxes(sandbox), Effect(str(number)), CONTEXT)
        assert sandbox.begun.wait(HANG_SECONDS)
    last = [Stop(), Stop()]
    for stop in last:
        threads.submit(first.sandboxes(stop), Effect("last"), CONTEXT)
    waiting(first, 2)
    sandboxes[0].released.set()
    wait_until(lambda: any(stop.begun.is_set() for stop in last), "the next sandbox")
    waiting(first, 1)
    container.released.set()
    for stop in (*sandboxes[1:], *last):
        assert stop.begun.wait(HANG_SECONDS)
        stop.released.set()


def test_a_clean_up_waits_for_the_last_sandbox(threads: ThreadPoolExecutor) -> None:
    first, sandbox, steps = patient(), Stop(), list[str]()
    stopping = under_way(threads, first.sandboxes(sandbox), sandbox)
    cleanup = threads.submit(first.cleanups(lambda *_: steps.append("removed")), Effect(), CONTEXT)
    waiting(first, 1)
    assert steps == []
    sandbox.released.set()
    stopping.result(HANG_SECONDS)
    cleanup.result(HANG_SECONDS)
    assert steps == ["removed"]


def test_a_sandbox_does_not_wait_for_containers_of_its_own_pod(threads: ThreadPoolExecutor) -> None:
    first, stop = patient(), Stop()
    under_way(threads, first.containers(stop), stop)
    first.sandboxes(lambda *_: None)(Effect("own"), CONTEXT)
    stop.released.set()


def test_a_container_waits_for_nothing(threads: ThreadPoolExecutor) -> None:
    first, sandbox = patient(), Stop()
    under_way(threads, first.sandboxes(sandbox), sandbox)
    first.containers(lambda *_: None)(Effect(), CONTEXT)
    sandbox.released.set()


@pytest.mark.parametrize(("longest", "quiet"), [(0.0, HANG_SECONDS), (HANG_SECONDS, 0.0)], ids=["longest", "quiet"])
def test_no_worker_waits_longer_than_the_maximum(threads: ThreadPoolExecutor, longest: float, quiet: float) -> None:
    first, stop, steps = StopOrder(longest, quiet), Stop(), list[str]()
    under_way(threads, first.containers(stop), stop)
    first.cleanups(lambda *_: steps.append("removed"))(Effect(), CONTEXT)
    assert steps == ["removed"]
    stop.released.set()


def test_workers_wait_longer_while_stops_begin_and_end(threads: ThreadPoolExecutor) -> None:
    now = [0.0]
    first, stop = StopOrder(10.0, 1.0, clock=lambda: now[0]), Stop()
    under_way(threads, first.containers(stop), stop)
    now[0] = 0.9
    first.containers(lambda *_: None)(Effect(), CONTEXT)
    cleanup = threads.submit(first.cleanups(lambda *_: None), Effect(), CONTEXT)
    waiting(first, 1)
    now[0] = 1.8
    with first._changed:
        first._changed.notify_all()
    waiting(first, 1)
    assert not cleanup.done()
    now[0] = 1.9
    with first._changed:
        first._changed.notify_all()
    cleanup.result(HANG_SECONDS)
    stop.released.set()


def test_a_failed_stop_no_longer_counts() -> None:
    def fail(*_: Any) -> None:
        raise OSError("no memory")

    first = patient()
    for stop in (first.containers, first.sandboxes):
        with pytest.raises(OSError, match="no memory"):
            stop(fail)(Effect(), CONTEXT)
    first.cleanups(lambda *_: None)(Effect(), CONTEXT)
