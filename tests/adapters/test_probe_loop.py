"""The thread that all probes of a process share: it outlives whatever it is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from chronolet.adapters.probes.loop import Loop

DAY_SECONDS = 86_400.0


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.stop()


def turned(loop: Loop) -> bool:
    """It has called what it was given, and gone to wait."""
    for _ in range(2):
        called = threading.Event()
        loop.soon(called.set)
        if not called.wait(5):
            return False
    return True


@pytest.mark.parametrize("days", [1, 25, 400_000])
def test_a_time_that_is_far_away_is_waited_for(loop: Loop, days: int) -> None:
    loop.soon(lambda: loop.at(time.monotonic() + days * DAY_SECONDS, lambda: None))
    assert turned(loop)


def test_a_failure_of_its_own_is_told_and_does_not_end_it(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> float:
        monkeypatch.undo()
        raise OverflowError("a defect")

    assert turned(loop)
    with capture_logs() as said:
        monkeypatch.setattr(loop, "_wait", fails)
        assert turned(loop)
    assert [one["log_level"] for one in said] == ["error"]


def test_a_thread_that_was_refused_is_asked_for_again(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            loop.soon(lambda: None)
    assert turned(loop)
