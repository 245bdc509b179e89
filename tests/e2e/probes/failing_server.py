"""A server that fails N probes of an agent on request, and holds all other probes.

Input: pids of agents. Output: probes that use the server, counts of failed probes.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.probes.probed_pods import ENOUGH_SECONDS
from tests.support.probes.probing import Server


class FailingServer:
    """A server that fails the requested number of probes of each process; all others get no answer."""

    def __init__(self) -> None:
        self.failed: Counter[int] = Counter()
        """Number of failed probes by the pid of the prober."""
        self._to_fail: Counter[int] = Counter()
        self._waiting: list[socket.socket] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = Server(self._serve)

    def probe(self, threshold: int) -> dict[str, Any]:
        """Return a probe of this server."""
        action = {"host": "127.0.0.1", "port": self._server.port, "path": "/"}
        return {"httpGet": action, "timeoutSeconds": ENOUGH_SECONDS, "failureThreshold": threshold}

    def fail(self, pid: int, count: int = 1) -> None:
        """Fail `count` more probes of this process."""
        with self._lock:
            self._to_fail[pid] += count

    def holds_probe_of(self, pid: int) -> bool:
        """Return whether a probe of this process is waiting for its answer."""
        with self._lock:
            return any(_comes_from(pid, one) for one in self._waiting)

    def close(self) -> None:
        self._over.set()
        self._server.close()

    def _serve(self, connection: socket.socket, _request: bytes) -> None:
        with self._lock:
            self._waiting.append(connection)
        try:
            while not (self._over.is_set() or _is_closed(connection) or self._answers(connection)):
                self._over.wait(0.02)
        finally:
            with self._lock:
                self._waiting.remove(connection)

    def _answers(self, connection: socket.socket) -> bool:
        with self._lock:
            pid = next((pid for pid, count in self._to_fail.items() if count and _comes_from(pid, connection)), 0)
            if pid:
                connection.sendall(b"HTTP/1.1 500 Failing\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                self._to_fail[pid] -= 1
                self.failed[pid] += 1
            return bool(pid)


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the client has closed the connection or was killed."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _comes_from(pid: int, connection: socket.socket) -> bool:
    """Return whether the client of the connection is this process."""
    try:
        port = f":{connection.getpeername()[1]:04X}"
        rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        ends = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port)}
        return any(str(one.readlink()) in ends for one in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False  # the process has ended, or has just closed a descriptor: checked again soon
