"""One connection to Redis: the first use opens it and logs in. It sends bytes and returns raw replies.

Input: a server's `Target`, packed commands. Output: replies as hiredis returns them, or a `RedisError`. Next:
`connection`; `encrypted`, which has the same methods for TLS. It uses RESP2, so replies are flat lists of bytes. It
does not use redis-py, because importing redis-py's connection imports all of redis-py: 6 MiB and 0.05 s of CPU in each
process and each command (docs/adr/0033).

There are no reference cycles, so a dropped connection is freed immediately, with its buffer.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final

import hiredis

from chronolet.kernel.storage.redis.errors import ConnectionLost, ReplyLate, replied
from chronolet.kernel.storage.redis.urls import Target

_READ_BYTES = 64 * 1024
"""Maximum number of bytes per read. malloc maps larger buffers separately and unmaps them immediately, which doubles
the time it takes to read a short reply.
"""
CONNECT_SECONDS = 5.0
_UNFINISHED: Final = object()
# If a server's machine is gone, this is noticed within 45 s, even by a connection that only reads.
KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
_TCP_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, option, value) for option, value in KEEPALIVE),
)


class Wire:
    """A connection to Redis without TLS, open or closed. Any error except an error reply closes it, because a late
    reply must not be taken for the reply to another call. `timeout`: for how many seconds the server may be silent.
    """

    def __init__(self, target: Target, timeout: float) -> None:
        self._target = target
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._reader = _reader()

    @property
    def connected(self) -> bool:
        """Whether the connection is open. If the server has closed it, that is noticed only at the next use."""
        return self._socket is not None

    def send(self, packed: bytes) -> None:
        """Send bytes, opening the connection if necessary. Raises ConnectionLost."""
        if self._socket is None:
            self._open()
        self._send(packed)

    def receive(self, timeout: float | None = None) -> Any:
        """Read one reply. An error reply is returned as a `ResponseError`, not raised. `timeout`: in seconds; if None,
        the time-out of the connection applies.

        Raises ConnectionLost, also if the server refuses to serve the connection.
        """
        with self._closed_on_error("read"):
            reply = self._reply(self._timeout if timeout is None else timeout)
            try:
                if isinstance(reply, ConnectionLost):
                    raise reply
                return reply
            finally:
                # Breaks a reference cycle: the error's traceback refers to this frame.
                del reply

    def close(self) -> None:
        """Close the connection; the next use reopens it. A `receive` that is in progress on another thread raises
        ConnectionLost.
        """
        closed, self._socket = self._socket, None
        if closed is not None:
            with contextlib.suppress(OSError):  # the server has closed it
                closed.shutdown(socket.SHUT_RDWR)
            closed.close()

    # -- internal ------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        with self._closed_on_error("connect"):
            self._reader = _reader()
            self._socket = _connected(self._target, min(self._timeout, CONNECT_SECONDS))
        for command in _login_commands(self._target):
            self._send(pack(*command))
            reply = self.receive()
            if isinstance(reply, Exception):
                self.close()
                raise ConnectionLost(f"{command[0]}: {reply}")

    def _send(self, packed: bytes) -> None:
        with self._closed_on_error("write"):
            self._opened(self._timeout).sendall(packed)

    def _opened(self, timeout: float) -> socket.socket:
        opened = self._socket
        if opened is None:
            raise ConnectionLost("the connection was closed by this process")
        if opened.gettimeout() != timeout:
            opened.settimeout(timeout)
        return opened

    def _reply(self, timeout: float) -> Any:
        while (reply := self._reader.gets()) is _UNFINISHED:
            received = self._opened(timeout).recv(_READ_BYTES)
            if not received:
                raise ConnectionLost("the connection was closed by the server")
            self._reader.feed(received)
        if isinstance(reply, hiredis.PushNotification):
            raise ConnectionLost(f"unexpected push message, RESP2 has none: {reply!r:.100}")
        return reply

    @contextlib.contextmanager
    def _closed_on_error(self, doing: str) -> Iterator[None]:
        """Close the connection on any exception, even an interrupt, and raise socket errors as ConnectionLost."""
        try:
            yield
        except TimeoutError as error:
            self.close()
            raise ReplyLate(f"{doing}: timed out") from error
        # An invalid path or host name raises ValueError.
        except (OSError, ValueError) as error:
            self.close()
            raise ConnectionLost(f"{doing}: {error}") from error
        except BaseException:
            self.close()
            raise


def pack(*command: str | bytes | int) -> bytes:
    """Return the bytes of a command."""
    # hiredis's stubs expect a tuple with one element.
    packed: bytes = hiredis.pack_command(command)  # type: ignore[arg-type]
    return packed


def _reader() -> hiredis.Reader:
    return hiredis.Reader(protocolError=_unreadable, replyError=replied, notEnoughData=_UNFINISHED)


def _unreadable(text: str) -> ConnectionLost:
    return ConnectionLost(f"invalid reply, is this a Redis server? {text}")


def _login_commands(target: Target) -> Iterator[tuple[str | int, ...]]:
    """Yield the first commands on a new connection."""
    if target.username:
        yield "AUTH", target.username, target.password
    elif target.password:
        yield "AUTH", target.password
    if target.database:
        yield "SELECT", target.database


def _connected(target: Target, timeout: float) -> socket.socket:
    """Connect to the first address that accepts a connection. Raises OSError, or ValueError if a path or host name is
    invalid.
    """
    if target.socket:
        return _dial(socket.AF_UNIX, target.socket, timeout)
    refused: OSError = OSError(f"{target.host} has no address")
    for family, *_, address in socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM):
        try:
            return _dial(family, address, timeout)
        except OSError as error:
            refused = error
    try:
        raise refused
    finally:
        del refused


def _dial(family: int, address: Any, timeout: float) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in () if family == socket.AF_UNIX else _TCP_OPTIONS:
            opened.setsockopt(*option)
        opened.settimeout(timeout)
        opened.connect(address)
    except BaseException:
        opened.close()
        raise
    return opened
