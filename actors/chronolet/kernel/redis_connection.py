"""Connections of our own to Redis: one for each use, raw replies, nothing sent twice that we did not mean to send
twice.

Comes in: a URL; packed commands. Goes out: replies as hiredis makes them (flat lists of bytes), errors in the kernel's
words. Why not a pool with clients: redis-py's default retry doubles writes, its default time-out breaks blocking
reads, and its response callbacks make a dict of every entry (measured in the engine research). Next: `redis_store`,
`redis_scan`.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import redis
from redis._parsers import _HiredisParser
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.retry import Retry

from chronolet.kernel import redis_url
from chronolet.kernel.redis_errors import LOST, translated

Command = Sequence[str | bytes | int]

_READ_SIZE = 256 * 1024


class _Parser(_HiredisParser):
    """redis-py's parser by hiredis, which refers to itself by its own handler of push messages (RESP2 has none).

    Left so, it and its read buffer would stay, after each lost connection, until Python searches for cycles: 16 to
    20 MiB with each end of a server that 110 pods use.
    """

    def __init__(self, socket_read_size: int) -> None:
        super().__init__(socket_read_size)  # type: ignore[no-untyped-call]
        self.pubsub_push_handler_func = _refuse_push


def _refuse_push(message: object) -> None:
    raise redis.ConnectionError(f"a push message, which RESP2 does not have: {message!r:.100}")


class Address:
    """Where the server is: makes connections to it, and names it without its password.

    RedisUrlError for a URL that names no server.
    """

    def __init__(self, url: str) -> None:
        redis_url.check(url)
        self.url = url
        self.where = redis_url.where(url)

    def connection(self, timeout: float) -> Any:
        """A connection that is opened by its first use.

        No retry by redis-py, RESP2 (flat lists), no CLIENT SETINFO. Whoever drops it frees it at once.
        """
        pool = ConnectionPool.from_url(
            self.url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=timeout,
            socket_connect_timeout=min(timeout, 5.0),
            socket_read_size=_READ_SIZE,
            protocol=2,
            driver_info=None,
            parser_class=_Parser,
        )
        return pool.make_connection()


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
        return b"".join(self._connection.pack_command(*command))

    def call(self, *command: str | bytes | int) -> Any:
        """Send one command that may safely be repeated, and answer its reply.

        A connection that turns out to be closed is opened again and the command sent once more; a time-out is not
        repeated. Raises StoreUnreachable or StoreBroken; redis.ResponseError is left to the caller.
        """
        return self.calls([command])[0]

    def calls(self, commands: Sequence[Command]) -> list[Any]:
        """Several commands in one round trip; as `call`."""
        packed = b"".join(self.pack(*command) for command in commands)
        with self._lock:
            self.resent = False
            try:
                return self.exchange(packed, len(commands))
            except redis.TimeoutError as error:
                raise translated(error, self.where) from error
            except LOST:
                self.resent = True
            try:
                return self.exchange(packed, len(commands))
            except LOST as error:
                raise translated(error, self.where) from error

    def exchange(self, packed: bytes, replies: int, *, timeout: float | None = None) -> list[Any]:
        """Send these bytes once and read so many replies; for callers that decide themselves what to send again.

        Raises redis-py's own errors. After one that tells of a lost connection it is closed: a late answer must never
        be taken for the next call's.
        """
        try:
            self.send(packed)
            return self.read(replies, timeout=timeout)
        except LOST as error:
            self.disconnect()
            # A refusal to serve (LOADING) is an answer that redis-py raises and keeps in the frame that raised it.
            traceback.clear_frames(error.__traceback__)
            raise

    def send(self, packed: bytes) -> None:
        """Put bytes on the wire, opening the connection if need be."""
        self._connection.send_packed_command([packed], check_health=False)

    def read(self, replies: int, *, timeout: float | None = None) -> list[Any]:
        """So many replies; the first error among them is raised once all have been read."""
        extra = {} if timeout is None else {"timeout": timeout}
        answers: list[Any] = []
        refused: redis.ResponseError | None = None
        for _ in range(replies):
            try:
                answers.append(self._connection.read_response(disable_decoding=True, **extra))
            except redis.ResponseError as error:
                refused = refused or error
        try:
            if refused is not None:
                raise refused
        finally:
            # The error knows this frame by its traceback: both would know each other, and the frame this connection.
            del refused
        return answers

    @property
    def connected(self) -> bool:
        return bool(self._connection.is_connected)

    @contextlib.contextmanager
    def held(self) -> Iterator[Channel]:
        """Keep others out for several exchanges."""
        with self._lock:
            yield self

    def disconnect(self) -> None:
        """Close; the next use opens it again."""
        self._connection.disconnect()
