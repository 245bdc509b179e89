"""Connections of our own to Redis: one for each use, raw replies, nothing sent twice that we did not mean to send
twice.

Comes in: a URL; packed commands. Goes out: replies as hiredis makes them (flat lists of bytes), errors in the kernel's
words. Next: `redis_store`, `redis_scan`; `redis_wire`, which has the socket.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Sequence
from typing import Any

from chronolet.kernel.storage.redis import urls, wire
from chronolet.kernel.storage.redis.errors import AnswerLate, ConnectionLost, RedisError, ResponseError, translated
from chronolet.kernel.storage.redis.wire import Wire

Command = Sequence[str | bytes | int]


class Address:
    """Where the server is: makes connections to it, and names it without its password.

    RedisUrlError for a URL that names no server.
    """

    def __init__(self, url: str) -> None:
        urls.check(url)
        self.url = url
        self.where = urls.where(url)
        self._target = urls.target(url)

    def connection(self, timeout: float) -> Wire:
        """A connection that is opened by its first use. Whoever drops it frees it at once."""
        return Wire(self._target, timeout)


class _Call:
    """A call that waits for its place in a round trip: its bytes, then its reply, or an error that is its own, for each
    thread adds to the traceback of what it raises. `turn` is released when it is over, or has to lead the next trip.
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
    """One connection and its lock. A lost connection is opened again by the next use."""

    def __init__(self, address: Address, timeout: float) -> None:
        self.where = address.where
        self._connection = address.connection(timeout)
        self._lock = threading.Lock()
        self._queue = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._led = False
        """Whether one of those who joined makes a round trip, or is about to."""
        self.resent = False
        """Whether the last `call` was sent a second time: its answer may be that of a repeat."""

    def pack(self, *command: str | bytes | int) -> bytes:
        """A command's bytes."""
        return wire.pack(*command)

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

    def join(self, packed: bytes) -> Any:
        """The reply to one call, sent once, in a round trip with all calls of other threads that wait here meanwhile:
        a server that writes each command to its disk before it answers does that once for all of them.

        Whoever comes first leads: makes the round trip for all that wait by then, and hands over to the first of those
        who came meanwhile. So nobody who has an answer waits for a trip of others.

        Raises errors of `redis_errors`, as `exchange`. If the connection is lost, each call without a reply raises.
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
        except BaseException as error:  # none of those who wait may take it for an answer
            self.disconnect()
            # A refusal to serve (LOADING) is an answer, which is kept in the frame that raised it.
            traceback.clear_frames(error.__traceback__)
            lost = type(error) if isinstance(error, RedisError) else ConnectionLost
            for call in calls:
                if not call.over:
                    call.end(lost(str(error)))
            if not isinstance(error, Exception):
                raise

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

    def disconnect(self) -> None:
        """Close; the next use opens it again."""
        self._connection.close()
