"""The timers of a process: they ring in order, and cancelled ones are not kept until their time."""

import queue
from collections.abc import Iterator

import pytest

from chronolet.kernel.effects.timers import FEW, Timers

DAYS = 30 * 86_400.0


@pytest.fixture
def timers() -> Iterator[Timers]:
    found = Timers()
    yield found
    found.stop()


def test_timers_ring_in_the_order_of_their_times(timers: Timers) -> None:
    rung: queue.Queue[int] = queue.Queue()
    for tenths in (3, 1, 2):
        timers.after(tenths / 10, lambda tenths=tenths: rung.put(tenths))  # type: ignore[misc]
    assert [rung.get(timeout=10) for _ in range(3)] == [1, 2, 3]


def test_a_cancelled_timer_does_not_ring(timers: Timers) -> None:
    rung: queue.Queue[str] = queue.Queue()
    timers.after(0.1, lambda: rung.put("cancelled")).cancel()
    timers.after(0.2, lambda: rung.put("kept"))
    assert rung.get(timeout=10) == "kept"


def test_cancelled_timers_are_not_kept_until_their_time(timers: Timers) -> None:
    rung: queue.Queue[int] = queue.Queue()
    kept = [timers.after(DAYS, lambda: None) for _ in range(10)]
    for number in range(5_000):
        timers.after(DAYS, lambda: None).cancel()
        if number % 1_000 == 0:
            timers.after(0.2, lambda number=number: rung.put(number))  # type: ignore[misc]
    assert [rung.get(timeout=10) for _ in range(5)] == [0, 1_000, 2_000, 3_000, 4_000]
    assert len(kept) <= len(timers) <= len(kept) + 2 * FEW


def test_a_timer_that_is_cancelled_after_it_rang_hides_no_other(timers: Timers) -> None:
    rung: queue.Queue[int] = queue.Queue()
    spent = [timers.after(0, lambda: rung.put(0)) for _ in range(10 * FEW)]
    assert [rung.get(timeout=10) for _ in spent] == [0] * len(spent)
    for timer in spent:
        timer.cancel()
    timers.after(0, lambda: rung.put(1))
    assert rung.get(timeout=10) == 1
