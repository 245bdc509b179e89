"""A reply from the engine that is read as it arrives and may be closed from another thread.

Input: an open HTTP connection. Output: the reply's bytes. Next: `connection`, which opens it;
`streams`, which decodes it.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from docker.transport.unixconn import UnixHTTPConnection
from urllib3.exceptions import HTTPError

from chronolet.adapters.docker_runtime import errors


class Cut:
    """Ends an exchange from another thread."""

    def __init__(self, raw: socket.socket) -> None:
        self._raw = raw
        self.closed = False

    def close(self) -> None:
        """Shut the socket down, which wakes its reader; merely closing the socket would leave the reader waiting."""
        self.closed = True
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_RDWR)


class OpenReply:
    """A reply that is read incrementally. `close` may be called from another thread and ends the reading."""

    def __init__(self, connection: UnixHTTPConnection, cut: Cut, reply: Any) -> None:
        self._connection = connection
        self._cut = cut
        self._reply = reply

    @property
    def closed(self) -> bool:
        return self._cut.closed

    def read_some(self) -> bytes:
        """Wait for bytes and return those received; empty at the end of the reply or after `close`. Raises `Refusal` if
        the connection breaks.
        """
        try:
            return bytes(self._reply.read1(65536))
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            return self._ended(error)

    def read_exactly(self, count: int) -> bytes:
        """Return exactly `count` bytes, or fewer at the end of the reply."""
        try:
            return bytes(self._reply.read(count))
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            return self._ended(error)

    def close(self) -> None:
        """Shut the connection down, which ends the reading; thread-safe."""
        self._cut.close()

    def release(self) -> None:
        """Close the connection. Called by the reading thread when it has finished."""
        self.close()
        self._connection.close()

    def _ended(self, error: Exception) -> bytes:
        if self.closed:
            return b""
        raise errors.broken(error, self._connection.unix_socket, "stream") from error
