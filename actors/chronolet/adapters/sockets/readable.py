"""Waiting for bytes on one socket.

Comes in: a socket. Goes out: whether there is something to read. Not by `select`, which knows no descriptor above 1023:
a process with many files open would take every such socket for one that has something.
"""

from __future__ import annotations

import select
import socket


def readable(raw: socket.socket, seconds: float) -> bool:
    """Whether a read would not wait, within so long: there are bytes, or it has ended. ValueError if it is closed."""
    watch = select.poll()
    watch.register(raw, select.POLLIN)
    return bool(watch.poll(max(seconds, 0.0) * 1000))
