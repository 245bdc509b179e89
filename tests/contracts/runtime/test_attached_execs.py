"""The contract of the runtime: commands with attached streams."""

import threading

import pytest

from chronolet.ports.runtime.runtime import (
    ExecState,
    Refusal,
    Runtime,
)
from tests.contracts.runtime.harness import CAT, EXIT_3, STOPS_ON_TERM, WIDE, Harness
from tests.support.scratch import HANG_SECONDS, wait_until


def test_a_command_has_output_and_exit_code(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    prepared = harness.runtime.create_exec(container, EXIT_3)
    assert harness.runtime.inspect_exec(prepared) == ExecState(running=False)
    attached = harness.runtime.attach_exec(prepared)
    assert sorted(attached.output()) == [("stderr", b"err\n"), ("stdout", b"out\n")]
    attached.close()
    wait_until(lambda: harness.runtime.inspect_exec(prepared) == ExecState(running=False, exit_code=3), "the exit code")
    with pytest.raises(Refusal) as again:
        harness.runtime.attach_exec(prepared)
    assert again.value.kind == "conflict"


def test_a_command_reads_its_input_to_the_end(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    prepared = harness.runtime.create_exec(container, CAT, stdin=True)
    attached = harness.runtime.attach_exec(prepared)
    output = attached.output()
    attached.send(b"some words\n")
    assert next(output) == ("stdout", b"some words\n")
    assert harness.runtime.inspect_exec(prepared) == ExecState(running=True)
    attached.end_input()
    assert list(output) == []
    wait_until(lambda: harness.runtime.inspect_exec(prepared) == ExecState(running=False, exit_code=0), "the exit code")


def resized(runtime: Runtime, prepared: str) -> bool:
    """Resize the terminal; return False if the engine has not started the command yet."""
    try:
        runtime.resize_exec(prepared, 31, 97)
    except Refusal as refusal:
        if refusal.kind not in ("failed", "not_found"):
            raise
        return False
    return True


def test_a_terminal_can_be_resized(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    prepared = harness.runtime.create_exec(container, WIDE, tty=True, stdin=True)
    attached = harness.runtime.attach_exec(prepared, tty=True)
    wait_until(lambda: resized(harness.runtime, prepared), "the start of the command")
    assert b"".join(piece for _, piece in attached.output()) == b"31 97\r\n"


def test_closing_the_attachment_ends_the_reading(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    attached = harness.runtime.attach_exec(harness.runtime.create_exec(container, CAT, stdin=True))
    reader = threading.Thread(target=lambda: list(attached.output()), daemon=True)
    reader.start()
    attached.close()
    reader.join(HANG_SECONDS)
    assert not reader.is_alive()


def test_commands_run_only_in_running_containers(harness: Harness) -> None:
    container = harness.container(harness.sandbox(), STOPS_ON_TERM)
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
