"""`replay --step` in a terminal: keys in one read, and what a signal leaves behind."""

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
from chronolet.cli.main import status_of
from tests.cli.support.busy_node import busy

node = busy()
raise SystemExit(status_of((*node.named, "replay", "--step"), node.services()))
"""


@contextmanager
def stepping() -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Run `replay --step` on a hand-written node in a terminal of its own; yield the terminal once it reads keys."""
    near, far = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdin=far, stdout=far, stderr=far)
    try:
        deadline = time.monotonic() + 60
        while echoes(near):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield near, process
    finally:
        process.kill()
        process.wait()
        os.close(far)
        os.close(near)


def echoes(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(number: signal.Signals) -> None:
    with stepping() as (terminal, process):
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert echoes(terminal)


def test_the_answer_of_a_jump_may_arrive_with_its_key() -> None:
    with stepping() as (terminal, process):
        os.write(terminal, b"nj#20\rnq")
        assert process.wait(60) == 0
        shown = os.read(terminal, 65_536)
        assert b"jump to: #20\r\n" in shown
        assert b"after entry #20\r\n" in shown
