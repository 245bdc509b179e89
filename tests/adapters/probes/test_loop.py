"""The thread that all probes of a process share: it survives all errors."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from chronolet.adapters.probes.scheduling.lanes import Lane, Outcome, ThreadAttempt
from chronolet.adapters.probes.scheduling.loop import Loop
from tests.support.scratch import HANG_SECONDS, wait_until

DAY_SECONDS = 86_400.0


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.stop()


def completed_round(loop: Loop) -> bool:
    """Wait until the loop has called all pending actions and is waiting again; return False on time-out."""
    for _ in range(2):
        called = threading.Event()
        loop.soon(called.set)
        if not called.wait(HANG_SECONDS):
            return False
    return True


@pytest.mark.parametrize("days", [1, 25, 400_000])
def test_the_loop_waits_for_a_distant_timer(loop: Loop, days: int) -> None:
    loop.soon(lambda: loop.at(time.monotonic() + days * DAY_SECONDS, lambda: None))
    assert completed_round(loop)


def test_an_error_of_the_loop_is_logged_and_does_not_end_it(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> float:
        monkeypatch.undo()
        raise OverflowError("a defect")

    assert completed_round(loop)
    with capture_logs() as logged:
        monkeypatch.setattr(loop, "_wait", fails)
        assert completed_round(loop)
    assert [one["log_level"] for one in logged] == ["error"]


def test_a_thread_that_could_not_start_is_retried(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            loop.soon(lambda: None)
    assert completed_round(loop)


def held(loop: Loop) -> list[weakref.ref[object]]:
    """Set 2,000 distant deadlines and cancel nine out of ten; return weak references to all timers."""
    refs: list[weakref.ref[object]] = []

    def begin() -> None:
        for n in range(2_000):
            timer = loop.at(time.monotonic() + DAY_SECONDS + n, lambda: None)
            refs.append(weakref.ref(timer))
            if n % 10:
                timer.cancel()
                timer.cancel()

    loop.soon(begin)
    assert completed_round(loop)
    return refs


def test_cancelled_deadlines_are_purged(loop: Loop) -> None:
    left = sum(one() is not None for one in held(loop))
    assert 200 <= left <= 500


def test_the_remaining_timers_fire_in_order(loop: Loop) -> None:
    rung: list[int] = []

    def begin() -> None:
        now = time.monotonic()
        timers = [loop.at(now + n / 10_000, lambda n=n: rung.append(n)) for n in range(1_000, 0, -1)]
        for timer in timers[1::2]:
            timer.cancel()
        loop.at(now + 0.2, lambda: [one.cancel() for one in timers])
        loop.at(now + 0.3, lambda: rung.append(0))

    loop.soon(begin)
    wait_until(lambda: bool(rung) and rung[-1] == 0, "the last of them")
    assert rung == [*range(2, 1_001, 2), 0]


def test_an_ended_lane_starts_nothing(loop: Loop) -> None:
    """A probe may become due after its lane has been ended, but before the loop's thread ends."""
    lane = Lane(loop, "lane", 1, HANG_SECONDS)
    done: list[object] = []
    attempts = [
        ThreadAttempt(
            lane,
            loop,
            lambda attempt: attempt.report(Outcome("success", "")),
            HANG_SECONDS,
            done.append,
            may=lambda: True,
            probe="one",
        )
        for _ in range(2)
    ]
    loop.soon(lambda: lane.submit(attempts[0]))
    wait_until(lambda: len(done) == 1, "the first")
    loop.soon(lane.end)
    loop.soon(lambda: lane.submit(attempts[1]))
    assert completed_round(loop)
    assert [one.began for one in attempts] == [True, False]
    lane.join(time.monotonic() + HANG_SECONDS)
    assert len(done) == 1
