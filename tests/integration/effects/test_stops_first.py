"""A clean-up begins when no stop of any pod is under way, or after a while."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chronolet.pod.stops_first import StopsFirst
from tests.support.scratch import HANG_SECONDS, wait_until


class Stop:
    """One that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self, _effect: Any, _context: Any) -> None:
        self.begun.set()
        assert self.let_go.wait(HANG_SECONDS)


def test_a_clean_up_waits_for_the_last_stop() -> None:
    first, stops, steps = StopsFirst(HANG_SECONDS), [Stop(), Stop()], list[str]()
    cleanup = first.cleanup(lambda *_: steps.append("cleaned up"))
    context: Any = None
    with ThreadPoolExecutor(3) as threads:
        under_way = [threads.submit(first.stop(stop), None, context) for stop in stops]
        assert all(stop.begun.wait(HANG_SECONDS) for stop in stops)
        waiting = threads.submit(cleanup, None, context)
        wait_until(lambda: bool(first._changed._waiters), "the clean-up that waits")  # type: ignore[attr-defined]
        stops[0].let_go.set()
        under_way[0].result(HANG_SECONDS)
        wait_until(lambda: bool(first._changed._waiters), "the clean-up that waits again")  # type: ignore[attr-defined]
        assert steps == []
        stops[1].let_go.set()
        waiting.result(HANG_SECONDS)
    assert steps == ["cleaned up"]


def test_a_clean_up_does_not_wait_for_as_long_as_a_stop_likes() -> None:
    first, stop, steps = StopsFirst(longest_seconds=0.0), Stop(), list[str]()
    context: Any = None
    with ThreadPoolExecutor(1) as threads:
        under_way = threads.submit(first.stop(stop), None, context)
        assert stop.begun.wait(HANG_SECONDS)
        first.cleanup(lambda *_: steps.append("cleaned up"))(None, context)  # type: ignore[arg-type]
        assert steps == ["cleaned up"]
        stop.let_go.set()
        under_way.result(HANG_SECONDS)


def test_a_stop_that_fails_is_over() -> None:
    first, context = StopsFirst(HANG_SECONDS), None

    def fail(*_: Any) -> None:
        raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"):
        first.stop(fail)(None, context)  # type: ignore[arg-type]
    first.cleanup(lambda *_: None)(None, context)  # type: ignore[arg-type]
