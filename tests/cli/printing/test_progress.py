"""The progress line is drawn only on a terminal and only after a second, and is erased at the end."""

import os
import pty
import subprocess
import sys

from tests.support.scratch import HANG_SECONDS

CODE = """
import sys, threading
from chronolet.cli.printing.progress import progress
drawn, flush = threading.Event(), sys.stderr.flush
def flushed():
    flush()
    drawn.set()
sys.stderr.flush = flushed
# The clock never advances, so that the line does not depend on the speed of this machine.
with progress("waiting for pod web", quiet_seconds={quiet}, clock=lambda: 0.0) as line:
    {wait}
    line.text = "waiting for pod api"
print("done")
"""


def on_terminal(quiet: float, wait: str) -> str:
    reader, writer = pty.openpty()
    code = CODE.format(quiet=quiet, wait=wait)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=writer, stderr=writer, stdin=subprocess.DEVNULL)
    os.close(writer)
    shown = b""
    try:
        while piece := os.read(reader, 4096):
            shown += piece
    except OSError:  # Linux reports that the other end of the terminal is closed
        pass
    finally:
        os.close(reader)
    assert process.wait(timeout=HANG_SECONDS) == 0
    return shown.decode()


def test_the_line_is_drawn_and_erased() -> None:
    shown = on_terminal(0.0, "drawn.wait()")
    assert shown.startswith("\rwaiting for pod web (0s)")
    erased = shown.removesuffix("done\r\n")
    assert erased.endswith("\r" + " " * len("waiting for pod web (0s)") + "\r")


def test_a_quick_operation_draws_nothing() -> None:
    assert on_terminal(3600.0, "pass") == "done\r\n"


def test_without_a_terminal_nothing_is_drawn() -> None:
    code = CODE.format(quiet=0.0, wait="pass")
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert (ended.stdout, ended.stderr) == ("done\n", "")
