"""Ports for servers that are told a number before they listen on it.

Input: nothing. Output: a number that nobody else is given: no other lane of tests, for the last one is kept in a file
that all share, and no client, for the kernel takes their ports from a range above. Next: whoever starts such a server.
"""

from __future__ import annotations

import fcntl
import socket
from pathlib import Path

_LAST = Path("/tmp/chronolet-port.lock")
_FIRST, _COUNT = 20_000, 10_000


def free_port() -> int:
    """A TCP port of 127.0.0.1 on which nobody listens; it comes up again after ten thousand others."""
    with _LAST.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        port = int(file.read() or _FIRST)
        while True:
            port = _FIRST + (port + 1 - _FIRST) % _COUNT
            if _is_free(port):
                break
        file.truncate(0)
        file.write(str(port))
    return port


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
