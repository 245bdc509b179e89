"""The contract of the runtime: commands in containers."""

import threading
import time
from collections.abc import Sequence

import pytest

from chronolet.ports.runtime.runtime import ExecState, Refusal
from tests.contracts.runtime.harness import ABSENT, COMPUTES, EXIT_3, EXIT_5, LASTS, STOPS_ON_TERM, Harness
from tests.support.scratch import HANG_SECONDS, wait_until


def running(harness: Harness) -> str:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    harness.ready(container)
    return container


def known(harness: Harness, exec_id: str) -> ExecState:
    found = harness.runtime.inspect_exec(exec_id)
    assert found is not None
    return found


def started(harness: Harness, exec_id: str) -> None:
    """Wait until the command is running: if `run_exec` times out, the engine may start the command only after that."""
    wait_until(lambda: harness.runtime.exec_seconds(exec_id) is not None, "the process of an exec")
    assert known(harness, exec_id) == ExecState(running=True)


def test_a_command_runs_once_and_keeps_its_exit_code(harness: Harness) -> None:
    container = running(harness)
    made = harness.runtime.create_exec(container, EXIT_5)
    before = known(harness, made)
    assert before == ExecState(running=False)
    result = harness.runtime.run_exec(made, HANG_SECONDS)
    assert (sorted(result.output.split()), result.exit_code) == ([b"err", b"out"], 5)
    assert known(harness, made) == ExecState(running=False, exit_code=5)
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec(made, HANG_SECONDS)
    assert refusal.value.kind == "conflict"


def test_a_missing_command_is_reported_in_the_output(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), ABSENT)
    result = harness.runtime.run_exec(made, HANG_SECONDS)
    assert result.exit_code in (126, 127)
    assert b"no such file or directory" in result.output


def test_a_timed_out_command_runs_until_killed(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), LASTS)
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec(made, 0.3)
    assert refusal.value.kind == "timeout"
    started(harness, made)
    harness.runtime.kill_exec(made)
    wait_until(lambda: not known(harness, made).running, "the end of a killed exec")
    assert known(harness, made).exit_code == 137
    harness.runtime.kill_exec(made)


def test_waiting_for_a_command_can_be_cancelled(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), LASTS)
    cancelled = threading.Event()
    timer = threading.Timer(0.2, cancelled.set)
    timer.start()
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec(made, cancelled=cancelled)
    timer.join()
    assert refusal.value.kind == "timeout"
    started(harness, made)


def test_a_command_ends_with_its_container(harness: Harness) -> None:
    container = running(harness)
    made = harness.runtime.create_exec(container, LASTS)
    ends: list[str | int] = []

    def run() -> None:
        try:
            ends.append(harness.runtime.run_exec(made).exit_code)
        except Refusal as refusal:
            ends.append(refusal.kind)

    runner = threading.Thread(target=run)
    runner.start()
    wait_until(lambda: known(harness, made).running, "the running exec")
    harness.runtime.kill(container)
    runner.join(HANG_SECONDS)
    assert not runner.is_alive()
    # The exit of the command or that of the container may be recorded first. A command that the engine had not fully
    # started is refused, or exits with 126 if the engine blames the command.
    assert len(ends) == 1
    assert ends[0] in ("not_found", "failed", 126, 137)
    left = harness.runtime.inspect_exec(made)
    assert left is None or not left.running


def test_a_dead_container_takes_no_commands(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), EXIT_3)
    harness.dead(container)
    with pytest.raises(Refusal, match="is not running") as refusal:
        harness.runtime.create_exec(container, EXIT_5)
    assert refusal.value.kind == "conflict"


def test_an_unknown_exec_is_not_found(harness: Harness) -> None:
    assert harness.runtime.inspect_exec("0" * 64) is None
    harness.runtime.kill_exec("0" * 64)
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec("0" * 64)
    assert refusal.value.kind == "not_found"


def test_a_killed_engine_forgets_its_execs(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), EXIT_5)
    harness.go_down()
    harness.come_up()
    assert harness.runtime.inspect_exec(made) is None


def test_commands_are_found_by_a_mark_in_their_environment(harness: Harness) -> None:
    container, other = running(harness), running(harness)
    mark = ("CHRONOLET_TEST", "one=1")
    made = harness.runtime.create_exec(container, LASTS, env=dict([mark]))
    without = harness.runtime.create_exec(container, LASTS, env={mark[0]: "one"})
    assert not harness.runtime.find_execs(container, mark), "it was not started"
    for one in (made, without):
        with pytest.raises(Refusal):
            harness.runtime.run_exec(one, 0.3)
        started(harness, one)
    assert harness.runtime.find_execs(container, mark) == [made]
    assert not harness.runtime.find_execs(other, mark)
    harness.runtime.kill_exec(made)
    wait_until(lambda: not harness.runtime.find_execs(container, mark), "the end of a killed exec")
    harness.runtime.kill_exec(without)
    harness.runtime.kill(other)
    assert not harness.runtime.find_execs(other, mark)
    assert not harness.runtime.find_execs("0" * 64, mark)


@pytest.mark.parametrize(("command", "works"), [(LASTS, False), (COMPUTES, True)])
def test_waiting_and_computing_commands_are_distinguished(
    harness: Harness, command: Sequence[str], *, works: bool
) -> None:
    made = harness.runtime.create_exec(running(harness), command)
    assert harness.runtime.exec_seconds(made) is None
    readings: list[tuple[float, float]] = []
    decided = threading.Event()

    def look() -> None:
        """Record the processor time used. Usage counts from the first reading, because starting a command takes
        processor time in either case.
        """
        seconds = harness.runtime.exec_seconds(made)
        if seconds is not None:
            readings.append((time.monotonic(), seconds))
        passed, used = (readings[-1][which] - readings[0][which] for which in (0, 1)) if readings else (0.0, 0.0)
        if len(readings) >= 3 and passed > 1 and (used >= passed / 2 if works else used <= passed / 4):
            decided.set()

    with pytest.raises(Refusal):
        harness.runtime.run_exec(made, HANG_SECONDS, cancelled=decided, meanwhile=look)
    assert decided.is_set(), readings
    harness.runtime.kill_exec(made)
    wait_until(lambda: harness.runtime.exec_seconds(made) is None, "the end of the command")
