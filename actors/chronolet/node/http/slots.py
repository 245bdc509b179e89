"""Connection slots: limit the connections and the concurrently rendered pages, and choose which connection to evict.

Input: connections and their activity. Output: slots, or none. Next: `server`.

A connection that waits for its client, for a request or for room to write, may be evicted for a newer one at any time.
One whose page is being rendered may not. Since fewer pages are rendered concurrently than there are slots, a slot is
always available: no number of clients can keep /healthz from answering.
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
    """The limit of concurrently rendered pages of this lane is reached."""


class _Connection:
    """One connection. `waits`: the server is waiting for its client."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.waits = True


class Slots:
    """The connections of one server. Usable from any thread."""

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        # Ordered by last activity: the first one has been waiting the longest.
        self._slots: dict[socket.socket, _Connection] = {}
        self._rendering: dict[Lane, int] = dict.fromkeys(MAX_CONCURRENT, 0)

    def enter(self, connection: socket.socket) -> bool:
        """Take a slot, if necessary that of the longest-waiting connection. False if all are busy."""
        with self._lock:
            if len(self._slots) >= self._connections and not self._evict():
                return False
            self._slots[connection] = _Connection(connection)
            return True

    def evict_oldest(self) -> None:
        """Evict the longest-waiting connection, for a resource other than slots, such as file descriptors."""
        with self._lock:
            self._evict()

    def leave(self, connection: socket.socket) -> None:
        """Free the connection's slot, before it is closed; a no-op if it has none."""
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
            # Wakes its thread, which sleeps in the socket and then closes it. Not SSLSocket's own shutdown, which would
            # release the TLS session while the other thread uses it.
            socket.socket.shutdown(oldest.connection, socket.SHUT_RDWR)
        except OSError:
            return True  # the client closed it first
        return True
