"""Probe attempts made from a test's thread, and scripted servers."""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.probes import Probing
from chronolet.ports.pods.probes import Attempt, HttpTarget, Reading, Target
from chronolet.ports.pods.requests import Request
from chronolet.ports.runtime.runtime import ContainerSpec, SandboxSpec
from tests.support.scratch import HANG_SECONDS

Script = Callable[[socket.socket, bytes], None]
"""What a server does with a connection and the request's bytes."""


SERVER_THREAD = "test server"


class Probes:
    """Makes probe attempts from a test's thread."""

    def __init__(self, prober: Probing) -> None:
        self.prober = prober

    def ask(self, target: Target, seconds: float = HANG_SECONDS) -> Reading:
        found: queue.Queue[Reading] = queue.Queue()
        self.prober.soon(lambda: self.prober.begin(target, seconds, found.put, lambda: True))
        reading = found.get(timeout=seconds + HANG_SECONDS)
        assert found.empty()
        return reading

    def cancel(self, attempts: Sequence[Attempt]) -> None:
        """Cancel the attempts that are in `attempts` when the prober's thread runs this."""

        def cancel() -> None:
            for one in attempts:
                one.cancel()

        self.prober.soon(cancel)

    def get(self, port: int, path: str = "/", seconds: float = HANG_SECONDS, **more: object) -> Reading:
        request = Request(host=str(more.pop("host", "127.0.0.1")), port=port, path=path, **more)  # type: ignore[arg-type]
        return self.ask(HttpTarget(request=request), seconds)


class Server:
    """A server that accepts connections, reads one request from each, and runs its script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self.tls: ssl.SSLContext | None = None
        threading.Thread(target=self._serve, name=SERVER_THREAD, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), name=SERVER_THREAD, daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            if self.tls is not None:
                connection = stack.enter_context(self.tls.wrap_socket(connection, server_side=True))
            request = connection.recv(65536)
            self.requests.append(request)
            self._script(connection, request)

    def close(self) -> None:
        # Closing alone would leave the socket listening while a thread waits in `accept`.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def held() -> tuple[int, int]:
    """Return the numbers of threads and open files of this process."""
    return threading.active_count(), sum(1 for _ in Path("/proc/self/fd").iterdir())


def running(runtime: FakeRuntime) -> str:
    """Start a container and return its id; the fake runtime must have the image `image`."""
    sandbox = runtime.create_sandbox(SandboxSpec(name="box", labels={}, image="image", hostname="h"))
    runtime.start(sandbox)
    made = runtime.create_container(ContainerSpec(name="app", labels={}, sandbox_id=sandbox, image="image"))
    runtime.start(made)
    return made
