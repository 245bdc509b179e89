"""Actors on one shared thread have the guarantees of other pykka actors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pykka
import pytest

from chronolet.kernel.host.shared_actors import SharedActor
from tests.support.scratch import HANG_SECONDS


class Thread:
    """A minimal shared thread."""

    def __init__(self) -> None:
        self._actions: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def soon(self, action: Callable[[], None]) -> None:
        self._actions.put(action)

    def settle(self) -> None:
        """Wait until all queued actions, and those that they queue, have run."""
        for _ in range(3):
            done = threading.Event()
            self.soon(done.set)
            assert done.wait(HANG_SECONDS)

    def stop(self) -> None:
        self._actions.put(None)
        self.thread.join(HANG_SECONDS)

    def _run(self) -> None:
        while (action := self._actions.get()) is not None:
            action()


@pytest.fixture
def thread() -> Iterator[Thread]:
    made = Thread()
    yield made
    made.stop()


class Recorder(SharedActor):
    """An actor that records its calls."""

    def __init__(self, thread: Thread, lines: list[Any]) -> None:
        super().__init__(thread)
        self.lines = lines
        self.named = threading.current_thread()

    def on_start(self) -> None:
        self.lines.append("start")

    def on_receive(self, message: Any) -> Any:
        if message == "raise":
            raise RuntimeError("on request")
        if message == "more":
            self.actor_ref.tell("later")
        self.lines.append((message, threading.current_thread()))
        return f"received {message}"

    def on_stop(self) -> None:
        self.lines.append("stop")

    def on_failure(self, _type: type[BaseException] | None, error: BaseException | None, _traceback: Any) -> None:
        self.lines.append(f"failed: {error}")


def test_many_actors_share_a_thread_and_receive_in_order(thread: Thread) -> None:
    before = set(threading.enumerate())
    records: list[list[Any]] = [[] for _ in range(200)]
    refs = [Recorder.start(thread, lines) for lines in records]
    for message in ("one", "more", "two"):
        for ref in refs:
            ref.tell(message)
    thread.settle()
    assert set(threading.enumerate()) <= before
    one = thread.thread
    expected = ["start", ("one", one), ("more", one), ("two", one), ("later", one)]
    assert all(sorted(map(str, lines)) == sorted(map(str, expected)) for lines in records)
    assert all(lines[0] == "start" and lines.index(("one", one)) < lines.index(("two", one)) for lines in records)
    for ref in refs:
        ref.stop()
    assert all(lines[-1] == "stop" for lines in records)


def test_ask_proxy_and_stop_work_as_in_pykka(thread: Thread) -> None:
    lines: list[Any] = []
    ref = Recorder.start(thread, lines)
    assert ref.ask("x", timeout=HANG_SECONDS) == "received x"
    assert ref.proxy().lines.get(timeout=HANG_SECONDS)[0] == "start"
    ref.stop()
    assert not ref.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("too late")
    assert lines[-1] == "stop"


def test_an_exception_ends_only_its_actor(thread: Thread) -> None:
    lines: list[Any] = []
    ref, other = Recorder.start(thread, lines), Recorder.start(thread, [])
    ref.tell("raise")
    ref.actor_stopped.wait(HANG_SECONDS)
    thread.settle()
    assert lines == ["start", "failed: on request"]
    assert not ref.is_alive()
    assert other.ask("y", timeout=HANG_SECONDS) == "received y"
    other.stop()
