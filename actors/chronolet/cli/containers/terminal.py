"""The terminal of the command line, handed over to a command in a container.

Comes in: the streams of a running command. Goes out: what it writes; to it what is typed, and the window's size.
Next: `exec`. Source: kubectl's pkg/util/term.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from chronolet.ports.runtime.runtime import Refusal
from chronolet.ports.runtime.streams import Attachment

Resize = Callable[[int, int], None]
"""Tells the command of a terminal's rows and columns; `Refusal` while it is not there yet."""

_PIECE = 65_536
_TRIES = 100
_PAUSE_SECONDS = 0.02


def stdin_is_terminal() -> bool:
    """Whether a person types, as far as one can know."""
    return sys.stdin is not None and sys.stdin.isatty()


def copy_input(attached: Attachment) -> None:
    """Hand over what comes on standard input, and its end, from a thread of its own."""
    # Not through sys.stdin: a thread that waits in its buffer would hinder the interpreter's end.
    number = sys.stdin.fileno()

    def copy() -> None:
        while piece := os.read(number, _PIECE):
            attached.send(piece)
        attached.end_input()

    threading.Thread(target=copy, name="stdin", daemon=True).start()


def copy_output(attached: Attachment) -> None:
    """Write what it writes, until it ends."""
    for stream, piece in attached.output():
        target = sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
        target.write(piece)
        target.flush()


@contextmanager
def raw() -> Iterator[None]:
    """Every key goes to the command, Ctrl-C too. The terminal is as it was afterwards, also after a signal."""
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    endings = {name: signal.signal(name, _end) for name in (signal.SIGTERM, signal.SIGHUP)}
    try:
        # At once: what was typed ahead is for the command.
        tty.setraw(number, termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
        for name, handler in endings.items():
            signal.signal(name, handler)


def _end(number: int, _: Any) -> None:
    sys.exit(128 + number)


@contextmanager
def told_of_size(resize: Resize) -> Iterator[None]:
    """The command hears the window's size now and whenever it changes."""
    changes: queue.SimpleQueue[bool] = queue.SimpleQueue()
    before = signal.signal(signal.SIGWINCH, lambda *_: changes.put(True))
    changes.put(True)

    def tell() -> None:
        while changes.get():
            _tell(resize)

    threading.Thread(target=tell, name="size", daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
        changes.put(False)


def _tell(resize: Resize) -> None:
    """In vain if the command does not begin within two seconds, or has ended."""
    for _ in range(_TRIES):
        size = _size()
        if size is None:
            return
        try:
            resize(size.lines, size.columns)
        except Refusal:
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _size() -> os.terminal_size | None:
    for stream in (sys.stdout, sys.stdin):
        try:
            return os.get_terminal_size(stream.fileno())
        except OSError:
            continue
    return None
