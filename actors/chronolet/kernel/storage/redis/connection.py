"""Redis connections with raw replies and explicit retries: no command is resent unless its caller allows it.

Input: a URL; packed commands. Output: replies as hiredis returns them (flat lists of bytes), errors translated for the
kernel. Next: `store`, `scan`; `wire` or `encrypted`, which owns the socket.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chronolet.kernel.storage.redis import urls, wire
from chronolet.kernel.storage.redis.errors import ConnectionLost, RedisError, ReplyLate, ResponseError, translated
from chronolet.kernel.storage.redis.wire import Wire

if TYPE_CHECKING:
    from chronolet.kernel.storage.redis.encrypted import EncryptedWire

Command = Sequence[str | bytes | int]


class Address:
    """The server's address. `connection` makes connections to the server; `where` is its URL without user, password and
    options.

    Raises RedisUrlError for an unusable URL.
    """

    def __init__(self, url: str) -> None:
        urls.check(url)
        self.url = url
        self.where = urls.where(url)
        self._target = urls.target(url)

    def connection(self, timeout: float) -> Wire | EncryptedWire:
        """Return a new connection, which is opened at its first use. Dropping the last reference to a `Wire` frees it
        immediately.
        """
        if self._target.tls is None:
            return Wire(self._target, timeout)
        from chronolet.kernel.storage.redis.encrypted import EncryptedWire  # noqa: PLC0415 - loads all of redis-py

        return EncryptedWire(self._target, timeout)


class _Call:
    """A call waiting to be part of a round trip: its bytes, then its reply or its error. Each call has its own error
    object, because each thread extends the traceback of the error it raises. `turn` is released when the call has
    ended, or when it has to lead the next round trip.
    """

    __slots__ = ("over", "packed", "reply", "turn")

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        self.reply: Any = None
        self.over = False
        self.turn = threading.Lock()
        self.turn.acquire()

    def end(self, reply: Any) -> None:
        self.reply = reply
        self.over = True
        self.turn.release()


class Channel:
    """One connection and its lock. A lost connection is reopened on its next use."""

    def __init__(self, address: Address, timeout: float) -> None:
        self.where = address.where
        self._connection = address.connection(timeout)
        self._lock = threading.Lock()
        self._queue = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._led = False
        """Whether one of the calls in `join` is making a round trip or is about to make one."""
        self.resent = False
        """Whether the last `call` or `calls` was sent twice. If so, the server may have executed it twice, and the
        reply is that of the repeat.
        """

    def pack(self, *command: str | bytes | int) -> bytes:
        """Return the bytes of a command."""
        return wire.pack(*command)

    def call(self, *command: str | bytes | int) -> Any:
        """Send one idempotent command, and return its reply.

        If the connection turns out to be closed, it is reopened and the command sent once more; a time-out is not
        retried. Raises StoreUnreachable or StoreBroken; the caller handles ResponseError.
        """
        return self.calls([command])[0]

    def calls(self, commands: Sequence[Command]) -> list[Any]:
        """Send several idempotent commands in one round trip; otherwise like `call`."""
        packed = b"".join(self.pack(*command) for command in commands)
        with self._lock:
            self.resent = False
            try:
                return self.exchange(packed, len(commands))
            except ReplyLate as error:
                raise translated(error, self.where) from error
            except ConnectionLost:
                self.resent = True
            try:
                return self.exchange(packed, len(commands))
            except ConnectionLost as error:
                raise translated(error, self.where) from error

    def exchange(self, packed: bytes, replies: int, *, timeout: float | None = None) -> list[Any]:
        """Send these bytes once and read the given number of replies; for callers that handle retries themselves.

        Raises RedisError. ConnectionLost closes the connection, because a late reply must never be taken for the reply
        to the next call.
        """
        self.send(packed)
        return self.read(replies, timeout=timeout)

    def join(self, packed: bytes) -> Any:
        """Send one call, without retries, in a batch with the calls of other threads that are waiting here, and return
        its reply. A server that writes to its disk before it replies does so once per batch.

        The first caller leads: it makes the round trip for all calls that are waiting by then, and hands the lead to
        the first call that arrives during the round trip. So no caller waits for another round trip once it has its
        reply.

        Raises RedisError, as `exchange` does. If the connection is lost, each call that has no reply yet raises.
        """
        call = _Call(packed)
        with self._queue:
            self._waiting.append(call)
            leads, self._led = not self._led, True
        if not leads:
            call.turn.acquire()
        if not call.over:
            self._lead()
        reply = call.reply
        try:
            if isinstance(reply, Exception):
                raise reply
            return reply
        finally:
            del reply, call  # as in `read`

    def _lead(self) -> None:
        try:
            with self._lock:
                self._exchange_waiting()
        finally:
            with self._queue:
                self._led = bool(self._waiting)
                if self._led:
                    self._waiting[0].turn.release()

    def _exchange_waiting(self) -> None:
        with self._queue:
            calls = list(self._waiting)
            self._waiting.clear()
        try:
            self.send(b"".join(call.packed for call in calls))
            for call in calls:
                call.end(self._connection.receive())
        except BaseException as error:  # each waiting call must fail, or it would wait permanently
            self.disconnect()
            import traceback  # noqa: PLC0415 - slow to load, and rarely needed

            # A refusal to serve (LOADING) is raised as a reply object, and the frame that raised it refers to it.
            traceback.clear_frames(error.__traceback__)
            lost = type(error) if isinstance(error, RedisError) else ConnectionLost
            for call in calls:
                if not call.over:
                    call.end(lost(str(error)))
            if not isinstance(error, Exception):
                raise

    def send(self, packed: bytes) -> None:
        """Send bytes, opening the connection if necessary."""
        self._connection.send(packed)

    def read(self, replies: int, *, timeout: float | None = None) -> list[Any]:
        """Read the given number of replies. Raises the first error among them, once all have been read."""
        found = [self._connection.receive(timeout) for _ in range(replies)]
        for reply in found:
            if isinstance(reply, ResponseError):
                try:
                    raise reply
                finally:
                    # Breaks a reference cycle: the error's traceback refers to this frame, and so to the connection.
                    del reply, found
        return found

    @property
    def connected(self) -> bool:
        return self._connection.connected

    def disconnect(self) -> None:
        """Close the connection; the next use reopens it."""
        self._connection.close()
