"""Exec probes on the shipped fake runtime; `tests/integration/effects` tests them on a real engine."""

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
from chronolet.adapters.probes.handlers import exec as exec_handler
from chronolet.adapters.probes.handlers.exec import MARK
from chronolet.adapters.probes.probing import EXEC_SLOTS, Probing, Timing
from chronolet.ports.pods.probes import MAY_NOT, Attempt, ExecTarget, Reading
from chronolet.ports.runtime.runtime import Refusal
from tests.support.probes.probing import Probes, held, running
from tests.support.scratch import HANG_SECONDS, wait_until

LASTS = ("lasts",)
"""A command that waits until it is killed."""
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


own_timeout = pytest.mark.parametrize("timing", [Timing(grace_seconds=HANG_SECONDS)], ids=["own-timeout"])
"""Timing with which an attempt's own thread reports its time-out, no matter how late it does so."""
long_slots = pytest.mark.parametrize(
    "timing", [Timing(exec_slot_seconds=3600.0, grace_seconds=HANG_SECONDS)], ids=["long-slots"]
)
"""Timing with which a CPU-bound command keeps its slot until it exits; the test also needs the fixture `computing`."""


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of the exec handler, so that the time-out never elapses before the command starts, and kills are
    repeated until the command exits, no matter how late the attempt's thread runs.
    """
    monkeypatch.setattr(exec_handler, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=time.sleep))


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch, runtime: FakeRuntime) -> None:
    """Make all running commands seem CPU-bound."""
    monkeypatch.setattr(runtime.execs, "seconds", lambda one: math.inf if one in running_commands(runtime) else None)


def running_commands(runtime: FakeRuntime) -> Sequence[str]:
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


@own_timeout
@pytest.mark.usefixtures("stopped_clock")
def test_a_timed_out_command_is_killed(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    # The first kill is refused and retried.
    runtime.refuse("kill_exec", Refusal("unavailable", "away"))
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS), 0.2)
    assert (reading.result, reading.output, reading.code) == ("failure", 'command "lasts" timed out', None)
    assert (reading.timed_out, reading.engine_seconds) == (True, 0.0)
    assert len(runtime.execs.all) == 1
    wait_until(lambda: not running_commands(runtime), "the end of the command")


@own_timeout
@pytest.mark.usefixtures("stopped_clock")
def test_a_timeout_of_an_unresponsive_engine_is_reported_as_such(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    runtime.refuse("inspect_exec", Refusal("timeout", "it does not answer"))
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS), 0.2)
    assert (reading.result, reading.timed_out, reading.engine_seconds) == ("failure", True, 0.2)
    assert reading.delay.engine == 200
    wait_until(lambda: not running_commands(runtime), "the end of the command")


def test_a_refusal_of_the_runtime_is_no_failure_of_the_container(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    runtime.refuse("create_exec", Refusal("failed", "no"))
    reading = probes.ask(ExecTarget(container_id=container, command=("well",)))
    assert (reading.result, reading.output) == ("error", "no")
    runtime.kill(container)
    reading = probes.ask(ExecTarget(container_id=container, command=("well",)))
    assert reading.result == "error"
    assert "is not running" in reading.output


def test_the_container_dies_during_the_command(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    begun = threading.Thread(
        target=lambda: (wait_until(lambda: bool(running_commands(runtime)), "exec"), runtime.kill(container))
    )
    begun.start()
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS))
    begun.join()
    assert reading.result in ("failure", "error")


@long_slots
@pytest.mark.usefixtures("computing")
def test_commands_beyond_the_concurrency_limit_are_queued(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    """The first commands run until the test ends them; the others wait for longer than their own time-out."""
    found: queue.Queue[Reading] = queue.Queue()
    began: list[bool] = []
    total = 2 * EXEC_SLOTS + 1

    def begin() -> None:
        target = ExecTarget(container_id=container, command=COMPUTES)
        times = [3600.0 if number < EXEC_SLOTS else 1.0 for number in range(total)]
        attempts = [probes.prober.begin(target, one, found.put, lambda: True) for one in times]
        began.extend(one.began for one in attempts)
        attempts[-1].cancel()

    probes.prober.soon(begin)
    wait_until(lambda: len(running_commands(runtime)) == EXEC_SLOTS and len(began) == total, "the concurrency limit")
    assert began == [number < EXEC_SLOTS for number in range(total)]
    running = time.monotonic()
    wait_until(lambda: time.monotonic() > running + 1.2, "more than the time-out of the others")
    assert len(runtime.execs.all) == EXEC_SLOTS
    for one in running_commands(runtime):
        runtime.execs.all[one].end(0)
    readings = [found.get(timeout=HANG_SECONDS) for _ in range(total - 1)]
    assert len(runtime.execs.all) == total - 1, "the cancelled one never started"
    spread = max(one.started for one in readings) - min(one.started for one in readings)
    assert spread >= 1.0
    assert all(one.seconds >= 0.99 for one in readings), "each time-out starts with its attempt"
    wait_until(lambda: not running_commands(runtime), "the end of all commands")
    assert found.empty()


@pytest.mark.parametrize("command", [LASTS, COMPUTES])
def test_hanging_commands_do_not_block_others(
    probes: Probes, runtime: FakeRuntime, container: str, command: tuple[str]
) -> None:
    """This holds however long their time-outs are. CPU-bound commands delay the others briefly."""
    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []

    def begin() -> None:
        hangs = ExecTarget(container_id=container, command=command)
        attempts.extend(
            probes.prober.begin(hangs, 3600, found.put, lambda: True, probe=f"hangs/{number}")
            for number in range(EXEC_SLOTS)
        )
        well = ExecTarget(container_id=container, command=("well",))
        probes.prober.begin(well, 3600, found.put, lambda: True, probe="well")

    probes.prober.soon(begin)
    reading = found.get(timeout=HANG_SECONDS)
    assert (reading.result, reading.output) == ("success", "fine\n")
    # The other command gets the first free slot, whether or not the last hanging command has started.
    wait_until(lambda: len(running_commands(runtime)) == EXEC_SLOTS, "the hanging commands")
    probes.cancel(attempts)
    wait_until(lambda: not running_commands(runtime), "the end of all commands")


@own_timeout
@pytest.mark.usefixtures("stopped_clock")
def test_a_probe_never_has_two_commands_at_a_time(probes: Probes, runtime: FakeRuntime, container: str) -> None:
    """While a hanging engine blocks the thread of a timed-out attempt, the probe's next attempt waits."""
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
        assert found.get(timeout=HANG_SECONDS).result == "success", "other probes are not affected"
        assert [one.began for one in attempts] == [True, False]
        assert len(runtime.execs.all) == 2
    release.set()
    assert found.get(timeout=HANG_SECONDS).result == "failure", "it started when the former had ended"


def test_commands_left_by_a_killed_process_are_killed_first(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    """Such commands are recognized by the probe's name in their environment; other commands are not touched."""

    def left_by(probe: str, **env: str) -> str:
        made = runtime.create_exec(container, LASTS, env=env or {MARK: probe})
        runtime.execs.start(made)
        return made

    mine, others, shell = left_by("me"), left_by("you"), left_by("", TERM="xterm")
    found: queue.Queue[Reading] = queue.Queue()
    target = ExecTarget(container_id=container, command=("well",))
    for first in (False, True):
        probes.prober.soon(
            lambda first=first: probes.prober.begin(target, 60, found.put, lambda: True, probe="me", first=first)
        )
        assert found.get(timeout=HANG_SECONDS).result == "success"
        assert (mine in running_commands(runtime)) is not first
    assert {others, shell} <= set(running_commands(runtime))
    runtime.execs.forget()


@pytest.mark.usefixtures("computing")
def test_stop_kills_running_commands_and_starts_none(runtime: FakeRuntime, container: str) -> None:
    before = held()
    prober = Probing(runtime, timing=Timing(exec_slot_seconds=3600.0, stop_seconds=HANG_SECONDS))
    found: list[Reading] = []
    target = ExecTarget(container_id=container, command=COMPUTES)
    total = EXEC_SLOTS + 2

    def begin() -> None:
        for number in range(total):
            prober.begin(target, 3600, found.append, lambda: True, probe=f"{number}")

    prober.soon(begin)
    wait_until(lambda: len(running_commands(runtime)) == EXEC_SLOTS, "the concurrency limit")
    prober.stop()
    assert not running_commands(runtime)
    assert [one for one in threading.enumerate() if one.name == "exec probe"] == []
    assert held() <= before
    assert (found, len(runtime.execs.all)) == ([], EXEC_SLOTS)


def test_stop_does_not_wait_for_a_hanging_engine(
    runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(runtime, "create_exec", lambda *_, **__: release.wait(HANG_SECONDS))
    prober = Probing(runtime)
    target = ExecTarget(container_id=container, command=("well",))
    prober.soon(lambda: prober.begin(target, 60, lambda _: None, lambda: True, probe="one"))
    wait_until(lambda: [one.name for one in threading.enumerate()].count("exec probe") == 1, "the thread")
    with capture_logs() as logged:
        prober.stop()
    assert [(one["event"], one["probe"]) for one in logged] == [("probe thread still running after stop", "one")]
    release.set()
    wait_until(lambda: "exec probe" not in [one.name for one in threading.enumerate()], "its end")


def test_a_cancelled_attempt_ends_its_command_and_reports_nothing(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []
    target = ExecTarget(container_id=container, command=LASTS)
    probes.prober.soon(lambda: attempts.append(probes.prober.begin(target, 60, found.put, lambda: True)))
    wait_until(lambda: bool(running_commands(runtime)), "the command")
    probes.cancel(attempts)
    wait_until(lambda: not running_commands(runtime), "the end of the command")
    assert found.empty()


@pytest.mark.usefixtures("stopped_clock")
@pytest.mark.parametrize(
    ("begins", "expected"),
    [(True, ("failure", 'command "lasts" timed out')), (False, ("error", "it did not end within 200ms"))],
)
def test_a_hanging_runtime_during_a_command(
    probes: Probes,
    runtime: FakeRuntime,
    container: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    begins: bool,
    expected: tuple[str, str],
) -> None:
    """If the command was seen running, its time-out is the container's failure, no matter how late it is noticed."""
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
        assert hangs.wait(HANG_SECONDS)  # blocks the loop's thread, so that it notices the time-out only afterwards

    probes.prober.soon(begin)
    reading = found.get(timeout=HANG_SECONDS)
    assert (reading.result, reading.output) == expected
    runtime.execs.forget()
    release.set()


@own_timeout
@pytest.mark.usefixtures("stopped_clock")
def test_a_command_that_starts_too_late_is_an_error_and_is_killed(
    probes: Probes, runtime: FakeRuntime, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an overloaded machine, the engine takes longer to start a command than the command's time-out."""

    def slow(_: str, seconds: float, **__: object) -> str:
        time.sleep(seconds)
        raise Refusal("timeout", "its time was up")

    monkeypatch.setattr(runtime, "run_exec", slow)
    reading = probes.ask(ExecTarget(container_id=container, command=LASTS), 0.2)
    assert (reading.result, reading.output) == ("error", "the runtime took more than 0.2s to begin the command")
    (made,) = runtime.execs.all
    runtime.execs.start(made)
    wait_until(lambda: not running_commands(runtime), "its end")


def test_an_attempt_without_a_thread_is_an_error_and_releases_its_slot(
    probes: Probes, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: queue.Queue[Reading] = queue.Queue()
    total = 2 * EXEC_SLOTS + 1

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


@long_slots
@pytest.mark.usefixtures("computing")
def test_without_the_lease_queued_attempts_create_no_command_and_none_is_started(
    probes: Probes, runtime: FakeRuntime, container: str
) -> None:
    """Running attempts have already created their commands; queued ones create none. A command that was created is not
    started.
    """
    found: queue.Queue[Reading] = queue.Queue()
    target = ExecTarget(container_id=container, command=COMPUTES)
    lost = threading.Event()
    total = EXEC_SLOTS + 3

    def begin() -> None:
        for _ in range(total):
            probes.prober.begin(target, 3600, found.put, lambda: not lost.is_set())

    probes.prober.soon(begin)
    wait_until(lambda: len(running_commands(runtime)) == EXEC_SLOTS, "the concurrency limit")
    lost.set()
    for one in running_commands(runtime):
        runtime.execs.all[one].end(1)
    readings = [found.get(timeout=HANG_SECONDS) for _ in range(total)]
    assert sorted(one.result for one in readings) == ["error"] * 3 + ["failure"] * EXEC_SLOTS
    assert len(runtime.execs.all) == EXEC_SLOTS
    once = iter([True, False])
    probes.prober.soon(lambda: probes.prober.begin(target, 3600, found.put, lambda: next(once)))
    assert found.get(timeout=HANG_SECONDS).output == MAY_NOT
    assert [one.started for one in runtime.execs.all.values()] == [True] * EXEC_SLOTS + [False]


def test_a_hanging_runtime_does_not_delay_the_outcome(
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
