"""Connection slots: limit the number of connections and of concurrently rendered pages, and choose which connection to
evict.

Input: connections and their activity. Output: slots, or none. Next: `server`.

A connection that is waiting for its client (to send a request, or to read the response) may be evicted for a newer one
at any time. A connection whose page is being rendered is never evicted. Since fewer pages are rendered concurrently
than there are slots, a slot is always available: no number of clients can keep /healthz from answering.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Lane = Literal["health", "metrics", "pages"]

CONNECTIONS = 128
MAX_CONCURRENT: dict[Lane, int] = {"metrics": 12, "pages": 24}
"""Limits on concurrently rendered pages. Health has no limit: its pages are rendered without waiting for anything."""


class TooManyError(Exception):
    """The lane's limit on concurrently rendered pages has been reached."""


class _Connection:
    """One connection. `waits`: whether the server is waiting for the client."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.waits = True


class Slots:
    """The connection slots of one server. Thread-safe."""

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        # Ordered by last activity: the first one has been waiting the longest.
        self._slots: dict[socket.socket, _Connection] = {}
        self._rendering: dict[Lane, int] = dict.fromkeys(MAX_CONCURRENT, 0)

    def enter(self, connection: socket.socket) -> bool:
        """Give `connection` a slot, if necessary by evicting the longest-waiting connection. Returns False if none can
        be evicted.
        """
        with self._lock:
            if len(self._slots) >= self._connections and not self._evict():
                return False
            self._slots[connection] = _Connection(connection)
            return True

    def evict_oldest(self) -> None:
        """Evict the longest-waiting connection, to free a resource other than slots, such as file descriptors."""
        with self._lock:
            self._evict()

    def leave(self, connection: socket.socket) -> None:
        """Free the connection's slot, before the connection is closed; a no-op if it has none."""
        with self._lock:
            self._slots.pop(connection, None)

    @contextmanager
    def rendering(self, connection: socket.socket, lane: Lane) -> Iterator[None]:
        """Protect the connection from eviction while its page is rendered. Raises TooManyError."""
        with self._lock:
            if self._rendering.get(lane, 0) >= MAX_CONCURRENT.get(lane, self._connections):
                raise TooManyError
            self._rendering[lane] = self._rendering.get(lane, 0) + 1
            self._moved(connection, waits=False)
        try:
            yield
        finally:
            with self._lock:
                self._rendering[lane] -= 1
                self._moved(connection, waits=True)

    def _moved(self, connection: socket.socket, *, waits: bool) -> None:
        slot = self._slots.pop(connection, None)
        if slot is not None:
            slot.waits = waits
            self._slots[connection] = slot

    def _evict(self) -> bool:
        oldest = next((one for one in self._slots.values() if one.waits), None)
        if oldest is None:
            return False
        del self._slots[oldest.connection]
        try:
            # Wakes the connection's thread, which is blocked on the socket and then closes it. Not SSLSocket's own
            # shutdown, which would release the TLS session while that thread uses it.
            socket.socket.shutdown(oldest.connection, socket.SHUT_RDWR)
        except OSError:
            return True  # the client closed it first
        return True
