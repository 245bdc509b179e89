"""Exec probes on the shipped fake of the runtime; what a real engine does is in `tests/integration/effects`."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from chronolet.adapters.fakes.runtime import FakeRuntime, Program
from chronolet.adapters.probes import probing
from chronolet.adapters.probes.handlers import exec as exec_handler
from chronolet.adapters.probes.handlers.exec import MARK
from chronolet.adapters.probes.probing import EXECS_AT_ONCE, Probing
from chronolet.adapters.probes.scheduling import lanes
from chronolet.ports.pods.probes import MAY_NOT, Attempt, ExecTarget, Reading
from chronolet.ports.runtime.runtime import Refusal
from tests.support.probes.probing import Probes, held, running
from tests.support.scratch import HANG_SECONDS, wait_until

LASTS = ("lasts",)
"""It waits for something that does not come."""
COMPUTES = ("computes",)
PROGRAMS = {
    ("well",): Program(exits=0, stdout=b"fine\n"),
    ("ill",): Program(exits=3, stdout=b"out", stderr=b"err"),
    ("absent",): Program(missing='exec: "absent": no such file'),
    ("wordy",): Program(exits=0, stdout=b"x" * 11_264),
    COMPUTES: Program(computes=True),
}


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime(programs=PROGRAMS, images=("image",))


@pytest.fixture
def container(runtime: FakeRuntime) -> str:
    return running(runtime)


@pytest.fixture
def in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt says itself that its time is up, however late its thread comes to that."""
    monkeypatch.setattr(lanes, "GRACE_SECONDS", HANG_SECONDS)


@pytest.fixture
def begun_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late an attempt's thread comes to run its command, the time is not up before; and commands are killed
    until they have ended.
    """
    monkeypatch.setattr(exec_handler, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=time.sleep))


@pytest.fixture
def long_places(monkeypatch: pytest.MonkeyPatch, runtime: FakeRuntime) -> None:
    """What computes keeps its place until it ends. Before `probes`."""
    monkeypatch.setattr(probing, "EXEC_LONGEST_SECONDS", 3600.0)
    monkeypatch.setattr(runtime.execs, "seconds", lambda one: math.inf if one in at_work(runtime) else None)


def at_work(runtime: FakeRuntime) -> Sequence[str]:
    return [one for one, state in list(runtime.execs.all.items()) if state.started and state.exit_code is None]


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


@pytest.mark.usefixtures("begun_in_time", "in_its_own_words")
def test_a_command_whose_time_is_up_is_killed(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    # The first kill is refused: it is tried again.
    runtime.refuse("kill_exec", Refusal("unavailable", "away"))
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS), 0.2)
    assert (reading.result, reading.output, reading.code) == ("failure", 'command "lasts" timed out', None)
    assert (reading.timed_out, reading.engine_seconds) == (True, 0.0)
    assert len(runtime.execs.all) == 1
    wait_until(lambda: not at_work(runtime), "the end of the command")


@pytest.mark.usefixtures("begun_in_time", "in_its_own_words")
def test_of_a_command_that_the_engine_does_not_speak_of_nobody_knows_whether_it_ended(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    runtime.refuse("inspect_exec", Refusal("timeout", "it does not answer"))
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS), 0.2)
    assert (reading.result, reading.timed_out, reading.engine_seconds) == ("failure", True, 0.2)
    assert reading.delay.engine == 200
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


@pytest.mark.usefixtures("long_places", "in_its_own_words")
def test_more_than_the_machine_can_run_wait_for_their_turn(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    """The first ones run until they are ended; the others have longer to wait than their own time."""
    found: queue.Queue[Reading] = queue.Queue()
    began: list[bool] = []
    total = 2 * EXECS_AT_ONCE + 1

    def begin() -> None:
        target = ExecTarget(container_id=container, command=COMPUTES)
        times = [3600.0 if number < EXECS_AT_ONCE else 1.0 for number in range(total)]
        attempts = [probes.prober.begin(target, one, found.put, lambda: True) for one in times]
        began.extend(one.began for one in attempts)
        attempts[-1].cancel()

    probes.prober.soon(begin)
    wait_until(lambda: len(at_work(runtime)) == EXECS_AT_ONCE and len(began) == total, "as many as may run")
    assert began == [number < EXECS_AT_ONCE for number in range(total)]
    running = time.monotonic()
    wait_until(lambda: time.monotonic() > running + 1.2, "more than the time of the others")
    assert len(runtime.execs.all) == EXECS_AT_ONCE
    for one in at_work(runtime):
        runtime.execs.all[one].end(0)
    readings = [found.get(timeout=HANG_SECONDS) for _ in range(total - 1)]
    assert len(runtime.execs.all) == total - 1, "the one that was cancelled never began"
    spread = max(one.started for one in readings) - min(one.started for one in readings)
    assert spread >= 1.0
    assert all(one.seconds >= 0.99 for one in readings), "the time of each begins with it"
    wait_until(lambda: not at_work(runtime), "the end of all commands")
    assert found.empty()


@pytest.mark.parametrize("command", [LASTS, COMPUTES])
def test_commands_that_hang_hold_nobody_up(
    probes: Probes, runtime: FakeRuntime, container: str, command: tuple[str]
) -> None:
    """However long their time-outs are. One that computes all the while makes the others wait for a moment."""
    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []

    def begin() -> None:
        hangs = ExecTarget(container_id=container, command=command)
        attempts.extend(
            probes.prober.begin(hangs, 3600, found.put, lambda: True, probe=f"hangs/{number}")
            for number in range(EXECS_AT_ONCE)
        )
        well = ExecTarget(container_id=container, command=("well",))
        probes.prober.begin(well, 3600, found.put, lambda: True, probe="well")

    probes.prober.soon(begin)
    reading = found.get(timeout=HANG_SECONDS)
    assert (reading.result, reading.output) == ("success", "fine\n")
    # The first place that is free is for the other one, be the last of those that hang begun or not.
    wait_until(lambda: len(at_work(runtime)) == EXECS_AT_ONCE, "those that hang, which have their time")
    probes.cancel(attempts)
    wait_until(lambda: not at_work(runtime), "the end of all commands")


@pytest.mark.usefixtures("begun_in_time", "in_its_own_words")
def test_nobody_has_two_commands_at_once(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    """While an engine that hangs keeps the thread of one whose time is up, its next attempt waits."""
    release, killing = threading.Event(), threading.Event()

    def hang(_: str) -> None:
        killing.set()
        release.wait(HANG_SECONDS)
        raise Refusal("unavailable", "away")

    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []
    target = ExecTarget(container_id=container, command=LASTS)

    def begin() -> None:
        attempts.append(probes.prober.begin(target, 0.2, found.put, lambda: True, probe="one"))

    with pytest.MonkeyPatch.context() as hanging:
        hanging.setattr(runtime, "kill_exec", hang)
        probes.prober.soon(begin)
        assert found.get(timeout=HANG_SECONDS).result == "failure"
        assert killing.wait(HANG_SECONDS)
        probes.prober.soon(begin)
        other = ExecTarget(container_id=container, command=("well",))
        probes.prober.soon(lambda: probes.prober.begin(other, HANG_SECONDS, found.put, lambda: True, probe="other"))
        assert found.get(timeout=HANG_SECONDS).result == "success", "others are not concerned"
        assert [one.began for one in attempts] == [True, False]
        assert len(runtime.execs.all) == 2
    release.set()
    assert found.get(timeout=HANG_SECONDS).result == "failure", "its turn came when the former had ended"


def test_what_a_killed_process_left_is_ended_first(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    """By its name, which the environment of the command tells: what others run is left alone."""

    def left_by(who: str, **env: str) -> str:
        made = runtime.create_exec(container, LASTS, env=env or {MARK: who})
        runtime.execs.start(made)
        return made

    mine, others, persons = left_by("me"), left_by("you"), left_by("", TERM="xterm")
    found: queue.Queue[Reading] = queue.Queue()
    target = ExecTarget(container_id=container, command=("well",))
    for first in (False, True):
        probes.prober.soon(
            lambda first=first: probes.prober.begin(target, 60, found.put, lambda: True, probe="me", first=first)
        )
        assert found.get(timeout=HANG_SECONDS).result == "success"
        assert (mine in at_work(runtime)) is not first
    assert {others, persons} <= set(at_work(runtime))
    runtime.execs.forget()


@pytest.mark.usefixtures("long_places")
def test_the_end_kills_what_is_at_work_and_begins_nothing(
    runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "STOP_SECONDS", HANG_SECONDS)
    before = held()
    prober = Probing(runtime)
    found: list[Reading] = []
    target = ExecTarget(container_id=container, command=COMPUTES)
    total = EXECS_AT_ONCE + 2

    def begin() -> None:
        for number in range(total):
            prober.begin(target, 3600, found.append, lambda: True, probe=f"{number}")

    prober.soon(begin)
    wait_until(lambda: len(at_work(runtime)) == EXECS_AT_ONCE, "as many as may run")
    prober.stop()
    assert not at_work(runtime)
    assert [one for one in threading.enumerate() if one.name == "exec probe"] == []
    assert held() <= before
    assert (found, len(runtime.execs.all)) == ([], EXECS_AT_ONCE)


def test_an_engine_that_hangs_does_not_keep_the_end_waiting(
    runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(runtime, "create_exec", lambda *_, **__: release.wait(HANG_SECONDS))
    prober = Probing(runtime)
    target = ExecTarget(container_id=container, command=("well",))
    prober.soon(lambda: prober.begin(target, 60, lambda _: None, lambda: True, probe="one"))
    wait_until(lambda: [one.name for one in threading.enumerate()].count("exec probe") == 1, "its thread")
    with capture_logs() as said:
        prober.stop()
    assert [(one["event"], one["probe"]) for one in said] == [("probe thread still running after stop", "one")]
    release.set()
    wait_until(lambda: "exec probe" not in [one.name for one in threading.enumerate()], "its end")


def test_one_that_is_cancelled_is_ended_and_not_told(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []
    target = ExecTarget(container_id=container, command=LASTS)
    probes.prober.soon(lambda: attempts.append(probes.prober.begin(target, 60, found.put, lambda: True)))
    wait_until(lambda: bool(at_work(runtime)), "the command")
    probes.cancel(attempts)
    wait_until(lambda: not at_work(runtime), "the end of the command")
    assert found.empty()


@pytest.mark.usefixtures("begun_in_time")
@pytest.mark.parametrize(
    ("begins", "expected"),
    [(True, ("failure", 'command "lasts" timed out')), (False, ("error", "it did not end within 200ms"))],
)
def test_a_runtime_that_hangs_while_a_command_runs(
    probes: Probes,
    runtime: FakeRuntime,
    container: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    begins: bool,
    expected: tuple[str, str],
) -> None:
    """However late it says that the time is over: if the command was seen to run, the container has been asked."""
    hangs, release = threading.Event(), threading.Event()

    def hang(exec_id: str, *_: object, meanwhile: Callable[[], object], **__: object) -> str:
        if begins:
            runtime.execs.start(exec_id)
        meanwhile()
        hangs.set()
        release.wait(HANG_SECONDS)
        raise Refusal("unavailable", "no answer")

    monkeypatch.setattr(runtime, "run_exec", hang)
    found: queue.Queue[Reading] = queue.Queue()

    def begin() -> None:
        probes.prober.begin(ExecTarget(container_id=container, command=LASTS), 0.2, found.put, lambda: True)
        assert hangs.wait(HANG_SECONDS)  # on the loop's thread, which sees only then that the time is over

    probes.prober.soon(begin)
    reading = found.get(timeout=HANG_SECONDS)
    assert (reading.result, reading.output) == expected
    runtime.execs.forget()
    release.set()


@pytest.mark.usefixtures("begun_in_time", "in_its_own_words")
def test_a_command_that_is_begun_too_late_says_nothing_of_the_container_and_is_killed(
    probes: Probes, runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that has too much to do the engine takes longer to begin it than it may last."""

    def slow(_: str, seconds: float, **__: object) -> str:
        time.sleep(seconds)
        raise Refusal("timeout", "its time was up")

    monkeypatch.setattr(runtime, "run_exec", slow)
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS), 0.2)
    assert (reading.result, reading.output) == ("error", "the runtime took more than 0.2s to begin the command")
    (made,) = runtime.execs.all
    runtime.execs.start(made)
    wait_until(lambda: not at_work(runtime), "its end")


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
            probes.prober.begin(target, HANG_SECONDS, found.put, lambda: True)

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        probes.prober.soon(begin)
        readings = [found.get(timeout=HANG_SECONDS) for _ in range(total)]
    assert {(one.result, one.output) for one in readings} == {("error", "can't start new thread")}
    assert probes.ask(ExecTarget(container_id=container, command=("well",))).result == "success"


@pytest.mark.usefixtures("long_places")
def test_what_waited_or_comes_next_is_not_done_without_the_lease(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    """Those at work have made their commands; those that wait for their turn make none. A command is not begun."""
    found: queue.Queue[Reading] = queue.Queue()
    target = ExecTarget(container_id=container, command=COMPUTES)
    lost = threading.Event()
    total = EXECS_AT_ONCE + 3

    def begin() -> None:
        for _ in range(total):
            probes.prober.begin(target, 3600, found.put, lambda: not lost.is_set())

    probes.prober.soon(begin)
    wait_until(lambda: len(at_work(runtime)) == EXECS_AT_ONCE, "as many as may run")
    lost.set()
    for one in at_work(runtime):
        runtime.execs.all[one].end(1)
    readings = [found.get(timeout=HANG_SECONDS) for _ in range(total)]
    assert sorted(one.result for one in readings) == ["error"] * 3 + ["failure"] * EXECS_AT_ONCE
    assert len(runtime.execs.all) == EXECS_AT_ONCE
    once = iter([True, False])
    probes.prober.soon(lambda: probes.prober.begin(target, 3600, found.put, lambda: next(once)))
    assert found.get(timeout=HANG_SECONDS).output == MAY_NOT
    assert [one.started for one in runtime.execs.all.values()] == [True] * EXECS_AT_ONCE + [False]


def test_a_runtime_that_hangs_is_not_waited_for(
    probes: Probes, runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def hang(*_: object, **__: object) -> str:
        release.wait(HANG_SECONDS)
        raise Refusal("timeout", "no answer")

    monkeypatch.setattr(runtime, "create_exec", hang)
    reading = probes.ask(ExecTarget(container_id=container, command=("well",)), 0.2)
    assert (reading.result, reading.output) == ("error", "it did not end within 200ms")
    release.set()
