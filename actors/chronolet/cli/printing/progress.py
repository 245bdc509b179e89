"""A line on the terminal for what takes longer than a second.

Comes in: what is being waited for. Goes out: a line on stderr that is overwritten and vanishes at the end; nothing
where stderr is no terminal. Next: commands that wait.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

QUIET_SECONDS = 1.0


class Progress:
    """The line's text, which the waiting thread may change."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.done = threading.Event()

    def show(self) -> None:
        """Draw until `done`, beginning after a quiet second."""
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
    """Show `text` for as long as the block runs; it may be changed by the value given to the block."""
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
