"""Scheduling priority on a busy machine: raised for the probe thread, but not for the threads that it starts.

Input: the calling thread. Output: its niceness, which Linux stores per thread and which new threads inherit. Next:
`loop`, and code that starts threads from the loop.
"""

from __future__ import annotations

import contextlib
import os
import threading

_FIRST = -10


def raise_priority() -> None:
    """Raise the calling thread's priority, because a late thread makes containers seem slow. Has no effect without
    permission.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _FIRST)


def reset_priority() -> None:
    """Give the calling thread the priority of the process's main thread."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, os.getpid()))
