"""A proxy between a store and its redis-server that loses replies and delays calls.

Input: the server's socket. Output: a socket that forwards all bytes, except for one call on request. Next: the tests of
lost replies.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path


class Proxy:
    """Relays bytes between its own unix socket and the server's."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.path = folder / "proxy"
        self.url = f"unix://{self.path}"
        self.lost = 0
        self._target = target
        self._lose: bytes | None = None
        self._keep: bytes | None = None
        self._kept: list[tuple[socket.socket, bytes]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_reply(self, marker: bytes) -> None:
        """Lose the reply to the next call that contains `marker`, and close the connection to the client."""
        self._lose = marker

    def keep(self, marker: bytes) -> None:
        """Hold the next call that contains `marker` until `deliver` is called, and close the client's connection."""
        self._keep = marker

    def deliver(self) -> bytes:
        """Deliver the held call late. Returns the server's reply, which no client awaits."""
        server, data = self._kept.pop()
        server.sendall(data)
        return server.recv(65536)

    @property
    def keeps(self) -> bool:
        return bool(self._kept)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._target))
            threading.Thread(target=self._replies, args=(server, client), daemon=True).start()
            while data := client.recv(1 << 20):
                if self._keep is not None and self._keep in data:
                    self._keep = None
                    self._hold(client, data)
                elif self._lose is not None and self._lose in data:
                    self._lose = None
                    self._swallow(client, data)
                else:
                    server.sendall(data)

    def _hold(self, client: socket.socket, data: bytes) -> None:
        late = socket.socket(socket.AF_UNIX)
        late.connect(str(self._target))
        self._kept.append((late, data))
        client.shutdown(socket.SHUT_RDWR)

    def _swallow(self, client: socket.socket, data: bytes) -> None:
        """Make the call on a separate connection, and withhold the reply from the client."""
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._target))
            server.sendall(data)
            assert server.recv(65536)
        self.lost += 1
        client.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _replies(server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


@contextlib.contextmanager
def proxy(folder: Path, target: Path) -> Iterator[Proxy]:
    made = Proxy(folder, target)
    try:
        yield made
    finally:
        made.close()
