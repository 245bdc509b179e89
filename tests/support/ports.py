"""Port numbers for servers that need one before they listen.

Input: nothing. Output: a port number that no concurrent test process gets, since all of them share a file with the last
number, and that no client gets, since the kernel assigns client ports from a higher range. Next: tests that start such
servers.
"""

from __future__ import annotations

import fcntl
import socket
from pathlib import Path

_LAST = Path("/tmp/chronolet-port.lock")
_FIRST, _COUNT = 20_000, 10_000


def free_port() -> int:
    """Return a free TCP port of 127.0.0.1. The ten thousand numbers are tried in turn, so the same port is returned
    again only after all others that are free.
    """
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
