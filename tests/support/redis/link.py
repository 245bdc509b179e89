"""A proxy between a process and its redis-server that can be cut, and redirected to another server.

Input: the socket of a server. Output: a socket that forwards everything in both directions. What is sent while the
network is cut arrives once it is mended, even if the sender has given up by then, as TCP would deliver it. Next:
`replicated.Replicated`, and the tests that partition processes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

_PIECE = 1 << 18


class Link:
    """Forwards between its own unix socket `url` and the server's, until it is closed."""

    def __init__(self, path: Path, target: Path) -> None:
        self.url = f"unix://{path}"
        self._target = target
        self._whole = threading.Event()
        self._whole.set()
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="redis link", daemon=True).start()

    def cut(self) -> None:
        """Hold back everything that is sent from now on, in both directions."""
        self._whole.clear()

    def mend(self) -> None:
        """Deliver what was held back, and forward again."""
        self._whole.set()

    def redirect(self, target: Path) -> None:
        """End all connections, and connect to this server from now on."""
        self._target = target
        with self._lock:
            ends = list(self._ends)
        for end in ends:
            _shut(end)

    def close(self) -> None:
        self.mend()
        _shut(self._listener)
        self._listener.close()
        self.redirect(self._target)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), name="redis link", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            self._whole.wait()
            try:
                server.connect(str(self._target))
            except OSError:
                return  # the server is down; the client finds its connection closed
            with self._lock:
                self._ends |= {client, server}
            replies = threading.Thread(target=self._forward, args=(server, client), name="redis link", daemon=True)
            replies.start()
            self._forward(client, server)
            replies.join()
            with self._lock:
                self._ends -= {client, server}

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                self._whole.wait()
                sink.sendall(piece)
        _shut(source)
        _shut(sink)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
