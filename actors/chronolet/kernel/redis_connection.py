"""Connections of our own to Redis: one for each use, raw replies, nothing sent twice that we did not mean to send
twice.

Comes in: a URL; packed commands. Goes out: replies as hiredis makes them (flat lists of bytes), errors in the kernel's
words. Next: `redis_store`, `redis_scan`; `redis_wire`, which has the socket.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.kernel import redis_url, redis_wire
from chronolet.kernel.redis_errors import AnswerLate, ConnectionLost, ResponseError, translated
from chronolet.kernel.redis_wire import Wire

Command = Sequence[str | bytes | int]


class Address:
    """Where the server is: makes connections to it, and names it without its password.

    RedisUrlError for a URL that names no server.
    """

    def __init__(self, url: str) -> None:
        redis_url.check(url)
        self.url = url
        self.where = redis_url.where(url)
        self._target = redis_url.target(url)

    def connection(self, timeout: float) -> Wire:
        """A connection that is opened by its first use. Whoever drops it frees it at once."""
        return Wire(self._target, timeout)


class Channel:
    """One connection and its lock. A lost connection is opened again by the next use."""

    def __init__(self, address: Address, timeout: float) -> None:
        self.where = address.where
        self._connection = address.connection(timeout)
        self._lock = threading.Lock()
        self.resent = False
        """Whether the last `call` was sent a second time: its answer may be that of a repeat."""

    def pack(self, *command: str | bytes | int) -> bytes:
        """A command's bytes."""
        return redis_wire.pack(*command)

    def call(self, *command: str | bytes | int) -> Any:
        """Send one command that may safely be repeated, and answer its reply.

        A connection that turns out to be closed is opened again and the command sent once more; a time-out is not
        repeated. Raises StoreUnreachable or StoreBroken; ResponseError is left to the caller.
        """
        return self.calls([command])[0]

    def calls(self, commands: Sequence[Command]) -> list[Any]:
        """Several commands in one round trip; as `call`."""
        packed = b"".join(self.pack(*command) for command in commands)
        with self._lock:
            self.resent = False
            try:
                return self.exchange(packed, len(commands))
            except AnswerLate as error:
                raise translated(error, self.where) from error
            except ConnectionLost:
                self.resent = True
            try:
                return self.exchange(packed, len(commands))
            except ConnectionLost as error:
                raise translated(error, self.where) from error

    def exchange(self, packed: bytes, replies: int, *, timeout: float | None = None) -> list[Any]:
        """Send these bytes once and read so many replies; for callers that decide themselves what to send again.

        Raises errors of `redis_errors`. After ConnectionLost it is closed: a late answer must never be taken for the
        next call's.
        """
        self.send(packed)
        return self.read(replies, timeout=timeout)

    def send(self, packed: bytes) -> None:
        """Put bytes on the wire, opening the connection if need be."""
        self._connection.send(packed)

    def read(self, replies: int, *, timeout: float | None = None) -> list[Any]:
        """So many replies; the first error among them is raised once all have been read."""
        answers = [self._connection.receive(timeout) for _ in range(replies)]
        for answer in answers:
            if isinstance(answer, ResponseError):
                try:
                    raise answer
                finally:
                    # The error knows this frame by its traceback: both would know each other, and this connection.
                    del answer, answers
        return answers

    @property
    def connected(self) -> bool:
        return self._connection.connected

    @contextlib.contextmanager
    def held(self) -> Iterator[Channel]:
        """Keep others out for several exchanges."""
        with self._lock:
            yield self

    def disconnect(self) -> None:
        """Close; the next use opens it again."""
        self._connection.close()
