"""Connects the local terminal to a command in a container.

Input: the streams of a running command. Output: the command's output on the terminal. Sends keyboard input and the
window size to the command. Next: `exec`. Source: kubectl's pkg/util/term.
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
"""Sets the command's terminal size in rows and columns. Raises `Refusal` until the command has started."""

_PIECE = 65_536
_ATTEMPTS = 100
_PAUSE_SECONDS = 0.02


def stdin_is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def copy_input(attached: Attachment) -> None:
    """Forward standard input to the command in a separate thread, and close the command's input at the end."""
    # Bypasses sys.stdin: a thread blocked in its buffer would prevent the interpreter from exiting.
    number = sys.stdin.fileno()

    def copy() -> None:
        while piece := os.read(number, _PIECE):
            attached.send(piece)
        attached.end_input()

    threading.Thread(target=copy, name="stdin", daemon=True).start()


def copy_output(attached: Attachment) -> None:
    """Write the command's output until it ends."""
    for stream, piece in attached.output():
        target = sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
        target.write(piece)
        target.flush()


@contextmanager
def raw() -> Iterator[None]:
    """Put the terminal in raw mode, so that every key, including Ctrl-C, is sent to the command.

    Restore the terminal on exit, even after a signal.
    """
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    with exit_on_signals():
        try:
            # TCSANOW keeps type-ahead for the command.
            tty.setraw(number, termios.TCSANOW)
            yield
        finally:
            termios.tcsetattr(number, termios.TCSADRAIN, before)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Exit on SIGTERM and SIGHUP by an exception, so that code that restores the terminal runs."""
    endings = {name: signal.signal(name, _end) for name in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for name, handler in endings.items():
            signal.signal(name, handler)


def _end(number: int, _: Any) -> None:
    sys.exit(128 + number)


@contextmanager
def forward_size(resize: Resize) -> Iterator[None]:
    """Send the window size to the command now and whenever it changes."""
    changes: queue.SimpleQueue[bool] = queue.SimpleQueue()
    before = signal.signal(signal.SIGWINCH, lambda *_: changes.put(True))
    changes.put(True)

    def forward() -> None:
        while changes.get():
            _resize(resize)

    threading.Thread(target=forward, name="size", daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
        changes.put(False)


def _resize(resize: Resize) -> None:
    """Send the window size. Give up if the command has ended or does not start within two seconds."""
    for _ in range(_ATTEMPTS):
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
