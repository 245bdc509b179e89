"""The contract of the runtime: commands with attached streams."""

import threading

import pytest

from chronolet.ports.runtime.runtime import (
    ExecState,
    Refusal,
    Runtime,
)
from tests.contracts.runtime.harness import CAT, EXIT_3, OBEDIENT, WIDE, Harness
from tests.support.scratch import HANG_SECONDS, wait_until


def test_a_command_runs_in_a_container_and_says_how_it_ended(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    prepared = harness.runtime.create_exec(container, EXIT_3)
    assert harness.runtime.inspect_exec(prepared) == ExecState(running=False)
    attached = harness.runtime.attach_exec(prepared)
    assert sorted(attached.output()) == [("stderr", b"err\n"), ("stdout", b"out\n")]
    attached.close()
    wait_until(lambda: harness.runtime.inspect_exec(prepared) == ExecState(running=False, exit_code=3), "its end")
    with pytest.raises(Refusal) as again:
        harness.runtime.attach_exec(prepared)
    assert again.value.kind == "conflict"


def test_a_command_reads_what_it_is_sent_until_the_end_of_it(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    prepared = harness.runtime.create_exec(container, CAT, stdin=True)
    attached = harness.runtime.attach_exec(prepared)
    output = attached.output()
    attached.send(b"some words\n")
    assert next(output) == ("stdout", b"some words\n")
    assert harness.runtime.inspect_exec(prepared) == ExecState(running=True)
    attached.end_input()
    assert list(output) == []
    wait_until(lambda: harness.runtime.inspect_exec(prepared) == ExecState(running=False, exit_code=0), "its end")


def resized(runtime: Runtime, prepared: str) -> bool:
    """False while the engine has not yet begun with it."""
    try:
        runtime.resize_exec(prepared, 31, 97)
    except Refusal as refusal:
        if refusal.kind not in ("failed", "not_found"):
            raise
        return False
    return True


def test_a_command_with_a_terminal_is_told_its_size(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    prepared = harness.runtime.create_exec(container, WIDE, tty=True, stdin=True)
    attached = harness.runtime.attach_exec(prepared, tty=True)
    wait_until(lambda: resized(harness.runtime, prepared), "a command that is there to be told")
    assert b"".join(piece for _, piece in attached.output()) == b"31 97\r\n"


def test_who_lets_go_of_a_command_reads_no_more(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    attached = harness.runtime.attach_exec(harness.runtime.create_exec(container, CAT, stdin=True))
    reader = threading.Thread(target=lambda: list(attached.output()), daemon=True)
    reader.start()
    attached.close()
    reader.join(HANG_SECONDS)
    assert not reader.is_alive()


def test_commands_run_in_running_containers_only(harness: Harness) -> None:
    container = harness.container(harness.sandbox(), OBEDIENT)
    with pytest.raises(Refusal) as unstarted:
        harness.runtime.create_exec(container, CAT)
    assert unstarted.value.kind == "conflict"
    with pytest.raises(Refusal) as nowhere:
        harness.runtime.create_exec("0" * 64, CAT)
    assert nowhere.value.kind == "not_found"
    assert harness.runtime.inspect_exec("0" * 64) is None
    with pytest.raises(Refusal) as nothing:
        harness.runtime.attach_exec("0" * 64)
    assert nothing.value.kind == "not_found"
