"""Progress line for operations that take longer than a second.

Input: a description of the operation. Output: a line on stderr that is redrawn and erased at the end; nothing if
stderr is not a terminal. Next: commands that wait.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

QUIET_SECONDS = 1.0


class Progress:
    """The progress line. The waiting thread may change its text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.done = threading.Event()

    def show(self) -> None:
        """Draw the line until `done`, starting after `QUIET_SECONDS`."""
        began = time.monotonic()
        if self.done.wait(QUIET_SECONDS):
            return
        width = 0
        while True:
            line = f"{self.text} ({int(time.monotonic() - began)}s)"
            sys.stderr.write("\r" + line.ljust(width))
            sys.stderr.flush()
            width = len(line)
            if self.done.wait(0.5):
                sys.stderr.write("\r" + " " * width + "\r")
                sys.stderr.flush()
                return


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """Show `text` while the block runs. The block may change it through the yielded object."""
    line = Progress(text)
    if not sys.stderr.isatty():
        yield line
        return
    drawer = threading.Thread(target=line.show, name="progress", daemon=True)
    drawer.start()
    try:
        yield line
    finally:
        line.done.set()
        drawer.join()
