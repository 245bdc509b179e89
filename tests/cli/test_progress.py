"""The progress line: on a terminal, after a quiet second, gone at the end; nothing anywhere else."""

import os
import pty
import subprocess
import sys

from tests.support.scratch import HANG_SECONDS

CODE = """
import threading
from chronolet.cli import progress
progress.QUIET_SECONDS = {quiet}
with progress.progress("waiting for pod web") as line:
    {wait}
    line.text = "waiting for pod db"
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


UNTIL_DRAWN = (
    "while not (drawn := [t for t in threading.enumerate() if t.name == 'progress']): pass\n    drawn[0].join(0.3)"
)


def test_what_takes_long_is_shown_and_wiped() -> None:
    shown = on_terminal(0.0, UNTIL_DRAWN)
    assert shown.startswith("\rwaiting for pod web (0s)")
    wiped = shown.removesuffix("done\r\n")
    assert wiped.endswith("\r" + " " * len("waiting for pod web (0s)") + "\r")


def test_what_is_quick_is_not_shown() -> None:
    assert on_terminal(30.0, "pass") == "done\r\n"


def test_without_a_terminal_nothing_is_shown() -> None:
    code = CODE.format(quiet=0.0, wait="pass")
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert (ended.stdout, ended.stderr) == ("done\n", "")
