"""The part of the runtime port's contract that is about commands in containers.

Input: the Docker adapter on a real engine, and the shipped fake. Output: proof that both do the same.
"""

import threading
import time
from collections.abc import Sequence

import pytest

from chronolet.ports.runtime.runtime import ExecState, Refusal
from tests.contracts.runtime.harness import ABSENT, COMPUTES, EXIT_3, LASTS, OBEDIENT, SAYS, Harness
from tests.support.scratch import HANG_SECONDS, wait_until


def running(harness: Harness) -> str:
    container = harness.run(harness.sandbox(), OBEDIENT)
    harness.ready(container)
    return container


def known(harness: Harness, exec_id: str) -> ExecState:
    found = harness.runtime.inspect_exec(exec_id)
    assert found is not None
    return found


def begun(harness: Harness, exec_id: str) -> None:
    """Whose time is up may have been faster than the engine, which begins with it all the same."""
    wait_until(lambda: harness.runtime.exec_seconds(exec_id) is not None, "the process of an exec")
    assert known(harness, exec_id) == ExecState(running=True)


def test_a_command_runs_once_and_its_end_is_remembered(harness: Harness) -> None:
    container = running(harness)
    made = harness.runtime.create_exec(container, SAYS)
    before = known(harness, made)
    assert before == ExecState(running=False)
    result = harness.runtime.run_exec(made, HANG_SECONDS)
    assert (sorted(result.output.split()), result.exit_code) == ([b"err", b"out"], 5)
    assert known(harness, made) == ExecState(running=False, exit_code=5)
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec(made, HANG_SECONDS)
    assert refusal.value.kind == "conflict"


def test_a_command_that_is_not_there_says_so(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), ABSENT)
    result = harness.runtime.run_exec(made, HANG_SECONDS)
    assert result.exit_code in (126, 127)
    assert b"no such file or directory" in result.output


def test_a_command_outlives_its_time_until_it_is_killed(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), LASTS)
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec(made, 0.3)
    assert refusal.value.kind == "timeout"
    begun(harness, made)
    harness.runtime.kill_exec(made)
    wait_until(lambda: not known(harness, made).running, "the end of a killed exec")
    assert known(harness, made).exit_code == 137
    harness.runtime.kill_exec(made)


def test_who_waits_for_a_command_can_be_called_off(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), LASTS)
    cancelled = threading.Event()
    timer = threading.Timer(0.2, cancelled.set)
    timer.start()
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec(made, cancelled=cancelled)
    timer.join()
    assert refusal.value.kind == "timeout"
    begun(harness, made)


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
    # Whether its own end or its container's is noted first is left open. One that the engine had not begun in earnest
    # is refused, or ends with 126 where the engine blames the command.
    assert len(ends) == 1
    assert ends[0] in ("not_found", "failed", 126, 137)
    left = harness.runtime.inspect_exec(made)
    assert left is None or not left.running


def test_a_dead_container_takes_no_commands(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), EXIT_3)
    harness.dead(container)
    with pytest.raises(Refusal, match="is not running") as refusal:
        harness.runtime.create_exec(container, SAYS)
    assert refusal.value.kind == "conflict"


def test_an_unknown_exec_is_nothing(harness: Harness) -> None:
    assert harness.runtime.inspect_exec("0" * 64) is None
    harness.runtime.kill_exec("0" * 64)
    with pytest.raises(Refusal) as refusal:
        harness.runtime.run_exec("0" * 64)
    assert refusal.value.kind == "not_found"


def test_an_engine_that_was_killed_forgets_its_execs(harness: Harness) -> None:
    made = harness.runtime.create_exec(running(harness), SAYS)
    harness.go_down()
    harness.come_up()
    assert harness.runtime.inspect_exec(made) is None


def test_commands_are_found_by_a_mark_in_their_environment(harness: Harness) -> None:
    container, other = running(harness), running(harness)
    mark = ("CHRONOLET_TEST", "one=1")
    made = harness.runtime.create_exec(container, LASTS, env=dict([mark]))
    without = harness.runtime.create_exec(container, LASTS, env={mark[0]: "one"})
    assert not harness.runtime.find_execs(container, mark), "it was not begun"
    for one in (made, without):
        with pytest.raises(Refusal):
            harness.runtime.run_exec(one, 0.3)
        begun(harness, one)
    assert harness.runtime.find_execs(container, mark) == [made]
    assert not harness.runtime.find_execs(other, mark)
    harness.runtime.kill_exec(made)
    wait_until(lambda: not harness.runtime.find_execs(container, mark), "the end of a killed exec")
    harness.runtime.kill_exec(without)
    harness.runtime.kill(other)
    assert not harness.runtime.find_execs(other, mark)
    assert not harness.runtime.find_execs("0" * 64, mark)


@pytest.mark.parametrize(("command", "works"), [(LASTS, False), (COMPUTES, True)])
def test_a_command_that_waits_is_told_from_one_that_works(
    harness: Harness, command: Sequence[str], *, works: bool
) -> None:
    made = harness.runtime.create_exec(running(harness), command)
    assert harness.runtime.exec_seconds(made) is None
    looks: list[tuple[float, float]] = []
    told = threading.Event()

    def look() -> None:
        """Counted from the first look on: what it takes to begin is work for both."""
        seconds = harness.runtime.exec_seconds(made)
        if seconds is not None:
            looks.append((time.monotonic(), seconds))
        passed, used = (looks[-1][which] - looks[0][which] for which in (0, 1)) if looks else (0.0, 0.0)
        if len(looks) >= 3 and passed > 1 and (used >= passed / 2 if works else used <= passed / 4):
            told.set()

    with pytest.raises(Refusal):
        harness.runtime.run_exec(made, HANG_SECONDS, cancelled=told, meanwhile=look)
    assert told.is_set(), looks
    harness.runtime.kill_exec(made)
    wait_until(lambda: harness.runtime.exec_seconds(made) is None, "its end")
