"""The heads of requests, read within a deadline: a client that sends a byte now and then is not waited for.

Input: a connection. Output: its bytes, TimeoutError, `HeadTooLargeError`. Next: `http`.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_SECONDS = 10.0
"""From the connection, TLS handshake included, or from the first byte of a later request, to the end of the head."""
IDLE_SECONDS = 75.0
"""Between two requests of a connection."""
WRITE_SECONDS = 30.0
"""For a whole answer."""
HEAD_BYTES = 64 * 1024


class HeadTooLargeError(Exception):
    """A head of more than HEAD_BYTES."""


class HeadReader(io.RawIOBase):
    """What a connection receives, until its deadline has passed or too much has come."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._idle = False
        self._received = 0

    def again(self) -> None:
        """An answer was sent: the next head may take its time to begin."""
        self._idle, self._received = True, 0
        self._until = time.monotonic() + IDLE_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Some bytes. Raises TimeoutError, HeadTooLargeError, OSError."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request's head did not arrive in time")
        self._connection.settimeout(left)
        count = self._connection.recv_into(buffer)
        if self._idle:
            self._idle, self._until = False, time.monotonic() + self._seconds
        self._received += count
        if self._received > HEAD_BYTES:
            raise HeadTooLargeError(f"the request's head has more than {HEAD_BYTES} bytes")
        return count


def shaken(connection: socket.socket, seconds: float) -> bool:
    """After the TLS handshake, if there is one: whether the client has shown a certificate, which is verified then."""
    if not isinstance(connection, ssl.SSLSocket):
        return False
    connection.settimeout(seconds)  # of the whole handshake
    connection.do_handshake()
    return bool(connection.getpeercert())
