"""A server that fails as many probes of an agent as a test requests, and holds all others.

Input: pids of agents. Output: probes that use the server, counts of failed ones.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.probes.probed_pods import ENOUGH_SECONDS
from tests.support.probing import Server


class Failing:
    """A server that fails as many probes of a process as it is told to; all others wait for their answer."""

    def __init__(self) -> None:
        self.answered: Counter[int] = Counter()
        """Probes that were failed, by the pid of who asked."""
        self._may: Counter[int] = Counter()
        self._waiting: list[socket.socket] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = Server(self._serve)

    def probe(self, threshold: int) -> dict[str, Any]:
        """A probe that asks it."""
        action = {"host": "127.0.0.1", "port": self._server.port, "path": "/"}
        return {"httpGet": action, "timeoutSeconds": ENOUGH_SECONDS, "failureThreshold": threshold}

    def fail(self, pid: int, count: int = 1) -> None:
        """So many more of this process's."""
        with self._lock:
            self._may[pid] += count

    def is_asked_by(self, pid: int) -> bool:
        """Whether a probe of this process waits for its answer."""
        with self._lock:
            return any(_comes_from(pid, one) for one in self._waiting)

    def close(self) -> None:
        self._over.set()
        self._server.close()

    def _serve(self, connection: socket.socket, _request: bytes) -> None:
        with self._lock:
            self._waiting.append(connection)
        try:
            while not (self._over.is_set() or _is_left(connection) or self._answers(connection)):
                self._over.wait(0.02)
        finally:
            with self._lock:
                self._waiting.remove(connection)

    def _answers(self, connection: socket.socket) -> bool:
        with self._lock:
            pid = next((pid for pid, count in self._may.items() if count and _comes_from(pid, connection)), 0)
            if pid:
                connection.sendall(b"HTTP/1.1 500 Failing\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                self._may[pid] -= 1
                self.answered[pid] += 1
            return bool(pid)


def _is_left(connection: socket.socket) -> bool:
    """Whether who asked hung up, or was killed."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _comes_from(pid: int, connection: socket.socket) -> bool:
    """Whether the other end of the connection is this process's."""
    try:
        port = f":{connection.getpeername()[1]:04X}"
        rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        ends = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port)}
        return any(str(one.readlink()) in ends for one in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False  # it has ended, or has just closed one: asked again soon
