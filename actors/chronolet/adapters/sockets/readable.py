"""Wait for bytes on one socket.

Input: a socket. Output: whether there is something to read. `poll` is used because `select` raises ValueError for
descriptors above 1023, which occur in a process with many open files.
"""

from __future__ import annotations

import select
import socket


def readable(raw: socket.socket, seconds: float) -> bool:
    """Wait at most `seconds`; return whether a read would not block, because of bytes or the end of the stream.

    Raises ValueError if the socket is closed.
    """
    watch = select.poll()
    watch.register(raw, select.POLLIN)
    return bool(watch.poll(max(seconds, 0.0) * 1000))
