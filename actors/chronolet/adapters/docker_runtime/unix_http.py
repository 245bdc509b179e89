"""urllib3's HTTP over a unix socket.

Input: the socket's path. Output: connections, and a pool of them. Next: `connection`. Docker's own library has the
same, but loads a full HTTP client: a quarter of what an agent loads before it acts (ADR 5).
"""

from __future__ import annotations

import socket
from typing import Any

from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

_HOST = "localhost"
"""HTTP requires a host in each request; an engine behind a unix socket ignores it."""


class UnixHTTPConnection(HTTPConnection):
    """One connection to the socket at `path`. `timeout`, in seconds, bounds connecting and each wait for bytes."""

    def __init__(self, host: str = _HOST, port: int | None = None, *, path: str, **others: Any) -> None:
        super().__init__(host, port, **others)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket. Raises OSError."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(self.timeout)
            made.connect(self.path)
        except BaseException:
            made.close()
            raise
        self.sock = made


class UnixHTTPConnectionPool(HTTPConnectionPool):
    """Keeps at most `maxsize` idle connections."""

    ConnectionCls = UnixHTTPConnection

    def __init__(self, path: str, *, maxsize: int) -> None:
        super().__init__(_HOST, maxsize=maxsize, path=path)
