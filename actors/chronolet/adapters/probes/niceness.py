"""Who goes first where the machine is busy: the probes' thread, and none of those that it starts.

Comes in: the thread that calls. Goes out: its niceness, of which on Linux each thread has one of its own, and gives it
to those that it starts. Next: `loop`, and whoever starts threads from the loop.
"""

from __future__ import annotations

import contextlib
import os
import threading

_FIRST = -10


def go_first() -> None:
    """Who is late himself takes others for late. Where it is not allowed, all goes on as it is."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _FIRST)


def go_with_all() -> None:
    """As the process's main thread does, by whomever this one was started."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, os.getpid()))
