"""Reads request heads within a deadline, so that a slow client cannot hold a connection.

Input: a connection. Output: its bytes, TimeoutError, `HeadTooLargeError`. Next: `server`.
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
"""Time limit for receiving a request's head: from when the connection is accepted (the TLS handshake counts), or from
the first byte of a later request.
"""
IDLE_SECONDS = 75.0
"""Time limit between two requests on a connection."""
WRITE_SECONDS = 30.0
"""Time limit for writing a whole response."""
HEAD_BYTES = 64 * 1024


class HeadTooLargeError(Exception):
    """The request's head is larger than HEAD_BYTES."""


class HeadReader(io.RawIOBase):
    """A connection's input stream with a deadline and a size limit."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._idle = False
        self._received = 0

    def again(self) -> None:
        """Reset the limits after a response: the next head may begin up to IDLE_SECONDS later."""
        self._idle, self._received = True, 0
        self._until = time.monotonic() + IDLE_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Receive bytes into `buffer` and return their number. Raises TimeoutError, HeadTooLargeError, OSError."""
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


def handshake(connection: socket.socket, seconds: float) -> bool:
    """Do the TLS handshake, if the connection uses TLS. Returns whether the client presented a certificate; if so, the
    handshake has verified it.
    """
    if not isinstance(connection, ssl.SSLSocket):
        return False
    connection.settimeout(seconds)  # limits the whole handshake
    connection.do_handshake()
    return bool(connection.getpeercert())
