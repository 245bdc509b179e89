"""Room for connections: how many there are, which one ends where there is no more, how many pages are made at once.

Input: connections and what they do. Output: places, or none. Next: `http`.

A connection that waits for its client, be it for a request or for room to write, may be ended at any time for a newer
one. One for which a page is being made may not. Since fewer pages are made at once than there are places, there is
always one that can be had: no number of clients keeps /healthz from an answer.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Lane = Literal["health", "metrics", "pages"]

CONNECTIONS = 128
AT_ONCE: dict[Lane, int] = {"metrics": 12, "pages": 24}
"""Pages that are made at once. Health has no limit of its own: its answers are made without waiting for anything."""


class TooManyError(Exception):
    """So many pages of this lane are being made that one more is refused."""


class _Place:
    """One connection. `waits` while only its client can do something next."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.waits = True


class Slots:
    """The connections of one server; any thread may call."""

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        # By what the connection has been doing last: the first one has been waiting the longest.
        self._places: dict[socket.socket, _Place] = {}
        self._made: dict[Lane, int] = dict.fromkeys(AT_ONCE, 0)

    def enter(self, connection: socket.socket) -> bool:
        """Take a place, if need be that of the connection that has waited the longest. False if all are at work."""
        with self._lock:
            if len(self._places) >= self._connections and not self._evict():
                return False
            self._places[connection] = _Place(connection)
            return True

    def end_oldest(self) -> None:
        """End the connection that has waited the longest, for want of something else than a place."""
        with self._lock:
            self._evict()

    def leave(self, connection: socket.socket) -> None:
        """Give the place back, before the connection is closed; without one, nothing."""
        with self._lock:
            self._places.pop(connection, None)

    @contextmanager
    def making(self, connection: socket.socket, lane: Lane) -> Iterator[None]:
        """Not to be ended while a page is made. Raises TooManyError."""
        with self._lock:
            if self._made.get(lane, 0) >= AT_ONCE.get(lane, self._connections):
                raise TooManyError
            self._made[lane] = self._made.get(lane, 0) + 1
            self._moved(connection, waits=False)
        try:
            yield
        finally:
            with self._lock:
                self._made[lane] -= 1
                self._moved(connection, waits=True)

    def _moved(self, connection: socket.socket, *, waits: bool) -> None:
        place = self._places.pop(connection, None)
        if place is not None:
            place.waits = waits
            self._places[connection] = place

    def _evict(self) -> bool:
        oldest = next((one for one in self._places.values() if one.waits), None)
        if oldest is None:
            return False
        del self._places[oldest.connection]
        try:
            # Its thread, which sleeps in the socket, wakes up and closes it. Not SSLSocket's own: that one lets go of
            # the session under the other thread.
            socket.socket.shutdown(oldest.connection, socket.SHUT_RDWR)
        except OSError:
            return True  # the client was quicker
        return True
