"""The timers of a process: they fire in order, and cancelled ones are dropped before they are due."""

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


def test_timers_fire_in_the_order_of_their_times(timers: Timers) -> None:
    fired: queue.Queue[int] = queue.Queue()
    for tenths in (3, 1, 2):
        timers.after(tenths / 10, lambda tenths=tenths: fired.put(tenths))  # type: ignore[misc]
    assert [fired.get(timeout=10) for _ in range(3)] == [1, 2, 3]


def test_a_cancelled_timer_does_not_fire(timers: Timers) -> None:
    fired: queue.Queue[str] = queue.Queue()
    timers.after(0.1, lambda: fired.put("cancelled")).cancel()
    timers.after(0.2, lambda: fired.put("kept"))
    assert fired.get(timeout=10) == "kept"


def test_cancelled_timers_are_not_kept_until_their_time(timers: Timers) -> None:
    fired: queue.Queue[int] = queue.Queue()
    kept = [timers.after(DAYS, lambda: None) for _ in range(10)]
    for number in range(5_000):
        timers.after(DAYS, lambda: None).cancel()
        if number % 1_000 == 0:
            timers.after(0.2, lambda number=number: fired.put(number))  # type: ignore[misc]
    assert [fired.get(timeout=10) for _ in range(5)] == [0, 1_000, 2_000, 3_000, 4_000]
    assert len(kept) <= len(timers) <= len(kept) + 2 * FEW


def test_cancelling_a_timer_after_it_fired_hides_no_other(timers: Timers) -> None:
    fired: queue.Queue[int] = queue.Queue()
    spent = [timers.after(0, lambda: fired.put(0)) for _ in range(10 * FEW)]
    assert [fired.get(timeout=10) for _ in spent] == [0] * len(spent)
    for timer in spent:
        timer.cancel()
    timers.after(0, lambda: fired.put(1))
    assert fired.get(timeout=10) == 1
