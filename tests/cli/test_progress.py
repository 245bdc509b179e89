"""The progress line: on a terminal, after a quiet second, gone at the end; nothing anywhere else."""

import os
import pty
import subprocess
import sys

from tests.support.scratch import HANG_SECONDS

CODE = """
import sys, threading, types
from chronolet.cli.printing import progress
progress.QUIET_SECONDS = {quiet}
progress.time = types.SimpleNamespace(monotonic=lambda: 0.0)  # no second passes, however slow this is
drawn, flush = threading.Event(), sys.stderr.flush
def flushed():
    flush()
    drawn.set()
sys.stderr.flush = flushed
with progress.progress("waiting for pod web") as line:
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
    except OSError:  # how Linux says that the other end of a terminal is closed
        pass
    finally:
        os.close(reader)
    assert process.wait(timeout=HANG_SECONDS) == 0
    return shown.decode()


def test_what_takes_long_is_shown_and_wiped() -> None:
    shown = on_terminal(0.0, "drawn.wait()")
    assert shown.startswith("\rwaiting for pod web (0s)")
    wiped = shown.removesuffix("done\r\n")
    assert wiped.endswith("\r" + " " * len("waiting for pod web (0s)") + "\r")


def test_what_is_quick_is_not_shown() -> None:
    assert on_terminal(3600.0, "pass") == "done\r\n"


def test_without_a_terminal_nothing_is_shown() -> None:
    code = CODE.format(quiet=0.0, wait="pass")
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert (ended.stdout, ended.stderr) == ("done\n", "")
