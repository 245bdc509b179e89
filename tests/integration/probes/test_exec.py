"""Exec probes on the shipped fake of the runtime; what a real engine does is in `tests/integration/effects`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

import pytest

from chronolet.adapters.fake_runtime import FakeRuntime, Program
from chronolet.adapters.probes.probing import EXECS_AT_ONCE
from chronolet.ports.probes import MAY_NOT, Attempt, ExecTarget, Reading
from chronolet.ports.runtime import Refusal
from tests.support.probing import Probes, running
from tests.support.scratch import wait_until

LASTS = ("lasts",)
PROGRAMS = {
    ("well",): Program(exits=0, stdout=b"fine\n"),
    ("ill",): Program(exits=3, stdout=b"out", stderr=b"err"),
    ("absent",): Program(missing='exec: "absent": no such file'),
    ("wordy",): Program(exits=0, stdout=b"x" * 11_264),
}


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime(programs=PROGRAMS, images=("image",))


@pytest.fixture
def container(runtime: FakeRuntime) -> str:
    return running(runtime)


def at_work(runtime: FakeRuntime) -> Sequence[str]:
    return [one for one, state in runtime.execs.all.items() if state.started and state.exit_code is None]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("well", ("success", "fine\n", 0)),
        ("ill", ("failure", "outerr", 3)),
        ("absent", ("failure", 'exec: "absent": no such file', 126)),
        ("wordy", ("success", "x" * 10_240, 0)),
    ],
)
def test_the_exit_code_decides(probes: Probes, container: str, command: str, expected: tuple[str, str, int]) -> None:
    reading = probes.ask(ExecTarget(container_id=container, command=(command,)))
    assert (reading.result, reading.output, reading.code) == expected


def test_a_command_whose_time_is_up_is_killed(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    # The first kill is refused: it is tried again.
    runtime.refuse("kill_exec", Refusal("unavailable", "away"))
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS), 0.2)
    assert (reading.result, reading.output, reading.code) == ("failure", 'command "lasts" timed out', None)
    assert len(runtime.execs.all) == 1
    wait_until(lambda: not at_work(runtime), "the end of the command")


def test_what_the_runtime_refuses_says_nothing_of_the_container(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    runtime.refuse("create_exec", Refusal("failed", "no"))
    reading = probes.ask(ExecTarget(container_id=container, command=("well",)))
    assert (reading.result, reading.output) == ("error", "no")
    runtime.kill(container)
    reading = probes.ask(ExecTarget(container_id=container, command=("well",)))
    assert reading.result == "error"
    assert "is not running" in reading.output


def test_a_container_that_dies_meanwhile(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    begun = threading.Thread(
        target=lambda: (wait_until(lambda: bool(at_work(runtime)), "exec"), runtime.kill(container))
    )
    begun.start()
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS))
    begun.join()
    assert reading.result in ("failure", "error")


def test_more_than_the_machine_can_run_wait_for_their_turn(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []
    total = 2 * EXECS_AT_ONCE + 1

    def begin() -> None:
        target = ExecTarget(container_id=container, command=LASTS)
        attempts.extend(probes.prober.begin(target, 0.3, found.put, lambda: True) for _ in range(total))

    probes.prober.soon(begin)
    wait_until(lambda: len(at_work(runtime)) == EXECS_AT_ONCE, "as many as may run")
    probes.prober.soon(attempts[-1].cancel)
    readings = [found.get(timeout=10) for _ in range(total - 1)]
    assert len(runtime.execs.all) == total - 1, "the one that was cancelled never began"
    spread = max(one.started for one in readings) - min(one.started for one in readings)
    assert spread >= 0.3
    assert all(one.seconds < 0.5 for one in readings), "the time of each begins with it"
    wait_until(lambda: not at_work(runtime), "the end of all commands")
    assert found.empty()


def test_one_that_is_cancelled_is_ended_and_not_told(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []
    target = ExecTarget(container_id=container, command=LASTS)
    probes.prober.soon(lambda: attempts.append(probes.prober.begin(target, 60, found.put, lambda: True)))
    wait_until(lambda: bool(at_work(runtime)), "the command")
    probes.prober.soon(attempts[0].cancel)
    wait_until(lambda: not at_work(runtime), "the end of the command")
    assert found.empty()


def test_one_that_has_begun_fails_if_its_runtime_hangs(
    probes: Probes, runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late the runtime says that the time is over: the container has been asked."""
    release = threading.Event()

    def hang(*_: object, **__: object) -> str:
        release.wait(10)
        raise Refusal("unavailable", "no answer")

    monkeypatch.setattr(runtime, "run_exec", hang)
    reading = probes.ask(ExecTarget(container_id=container, command=("well",)), 0.2)
    assert (reading.result, reading.output) == ("failure", 'command "well" timed out')
    release.set()


def test_threads_that_are_refused_are_errors_and_keep_no_place(
    probes: Probes, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: queue.Queue[Reading] = queue.Queue()
    total = 2 * EXECS_AT_ONCE + 1

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def begin() -> None:
        target = ExecTarget(container_id=container, command=("well",))
        for _ in range(total):
            probes.prober.begin(target, 5, found.put, lambda: True)

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        probes.prober.soon(begin)
        readings = [found.get(timeout=10) for _ in range(total)]
    assert {(one.result, one.output) for one in readings} == {("error", "can't start new thread")}
    assert probes.ask(ExecTarget(container_id=container, command=("well",))).result == "success"


def test_what_waited_or_comes_next_is_not_done_without_the_lease(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    """Those at work have made their commands; those that wait for their turn make none. A command is not begun."""
    found: queue.Queue[Reading] = queue.Queue()
    target = ExecTarget(container_id=container, command=LASTS)
    lost = threading.Event()
    total = EXECS_AT_ONCE + 3

    def begin() -> None:
        for _ in range(total):
            probes.prober.begin(target, 0.3, found.put, lambda: not lost.is_set())

    probes.prober.soon(begin)
    wait_until(lambda: len(at_work(runtime)) == EXECS_AT_ONCE, "as many as may run")
    lost.set()
    readings = [found.get(timeout=10) for _ in range(total)]
    assert sorted(one.result for one in readings) == ["error"] * 3 + ["failure"] * EXECS_AT_ONCE
    assert len(runtime.execs.all) == EXECS_AT_ONCE
    once = iter([True, False])
    probes.prober.soon(lambda: probes.prober.begin(target, 0.3, found.put, lambda: next(once)))
    assert found.get(timeout=5).output == MAY_NOT
    assert [one.started for one in runtime.execs.all.values()] == [True] * EXECS_AT_ONCE + [False]


def test_a_runtime_that_hangs_is_not_waited_for(
    probes: Probes, runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def hang(*_: object) -> str:
        release.wait(10)
        raise Refusal("timeout", "no answer")

    monkeypatch.setattr(runtime, "create_exec", hang)
    reading = probes.ask(ExecTarget(container_id=container, command=("well",)), 0.2)
    assert (reading.result, reading.output) == ("error", "it did not end within 200ms")
    release.set()
