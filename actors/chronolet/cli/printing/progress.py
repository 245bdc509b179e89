"""Shows a progress line for operations that take longer than a second.

Input: a description of the operation. Output: a line on stderr that is redrawn repeatedly and finally erased; nothing
if stderr is not a terminal. Next: commands that wait.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET_SECONDS = 1.0


class Progress:
    """A line on stderr that shows a text and the elapsed time until `done` is set. `text` may be changed while the line
    is shown.
    """

    def __init__(self, text: str, quiet_seconds: float, clock: Callable[[], float]) -> None:
        self.text = text
        self.done = threading.Event()
        self._quiet_seconds = quiet_seconds
        self._clock = clock

    def show(self) -> None:
        """Draw the line until `done`, starting after `quiet_seconds`."""
        began = self._clock()
        if self.done.wait(self._quiet_seconds):
            return
        width = 0
        while True:
            line = f"{self.text} ({int(self._clock() - began)}s)"
            sys.stderr.write("\r" + line.ljust(width))
            sys.stderr.flush()
            width = len(line)
            if self.done.wait(0.5):
                sys.stderr.write("\r" + " " * width + "\r")
                sys.stderr.flush()
                return


@contextmanager
def progress(
    text: str, *, quiet_seconds: float = QUIET_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """While the block runs, show `text` and the time elapsed according to `clock`, but only after `quiet_seconds`.

    The block may change the text through the yielded object.
    """
    line = Progress(text, quiet_seconds, clock)
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
