"""Connections that wait until their server has started and are then relayed to it."""

from __future__ import annotations

import asyncio
import gc
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronolet.adapters.sockets import paths, unix_sockets
from chronolet.adapters.sockets.relay import BACKLOG, Relay
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

MANY = 200

ALONE = """
import sys, threading
from pathlib import Path
from chronolet.adapters.sockets import unix_sockets
from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.pod_resources.server import GrpcPodResources
from chronolet.ports.devices.pod_resources import NodeResources

folder, stop = Path(sys.argv[1]), threading.Event()
resources = GrpcPodResources(folder / "pod-resources", NodeResources, lambda *_: None)
plugins = GrpcDevicePlugins(folder / "device-plugins", folder / "watched")
opened = threading.Event()
serving = [
    threading.Thread(target=resources.serve, args=(stop,)),
    threading.Thread(target=plugins.serve, args=(lambda _: "", opened.set, stop)),
    threading.Thread(target=plugins.watch, args=(lambda _: "", lambda _: None, stop)),
]
for one in serving:
    one.start()
opened.wait()
while unix_sockets.identity(folder / "pod-resources/kubelet.sock") is None:
    pass
print("grpc" in sys.modules, "google.protobuf" in sys.modules, file=sys.stderr)
stop.set()
for one in serving:
    one.join()
print("grpc" in sys.modules, "google.protobuf" in sys.modules, file=sys.stderr)
"""


class Backwards(socketserver.StreamRequestHandler):
    """Sends the request back in reverse order once the client has sent all of it."""

    def handle(self) -> None:
        self.wfile.write(self.rfile.read()[::-1])


class Tidy(socketserver.StreamRequestHandler):
    """Sends the request back after a garbage collection."""

    def handle(self) -> None:
        request = self.rfile.read()
        gc.collect()
        self.wfile.write(request)


class Greeting(socketserver.StreamRequestHandler):
    """Sends a greeting immediately, then waits until the client has disconnected."""

    left = threading.Semaphore(0)

    def handle(self) -> None:
        self.wfile.write(b"hello")
        self.rfile.read()
        self.left.release()


class Server:
    """A server that starts when the test permits it; counts its starts and stops."""

    def __init__(self, path: Path, handler: type[socketserver.StreamRequestHandler] = Backwards) -> None:
        self.path = path
        self.handler = handler
        self.may_start = threading.Event()
        self.starts = self.stops = 0

    def start(self) -> Callable[[], None]:
        assert self.may_start.wait(HANG_SECONDS)
        self.starts += 1
        server = socketserver.ThreadingUnixStreamServer(str(self.path), self.handler)
        server.daemon_threads, server.block_on_close = True, False
        server.socket.listen(BACKLOG)
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def stop() -> None:
            self.stops += 1
            server.shutdown()
            server.server_close()

        return stop


@pytest.fixture
def folder() -> Iterator[Path]:
    found = scratch.create("relay")
    yield found
    subprocess.run(["rm", "-r", str(found)], check=True)


@contextmanager
def relayed(folder: Path, start: Callable[[], Callable[[], None]]) -> Iterator[tuple[Relay, str]]:
    path = str(folder / "front")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(BACKLOG)
        with Relay(listener, folder / "behind", start) as relay:
            yield relay, path


def ask(path: str, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(HANG_SECONDS)
        client.connect(path)
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def is_rejected(path: str) -> bool:
    """Whether the connection is closed without a response, possibly before the request could be sent."""
    try:
        return ask(path, b"hello?") == b""
    except (BrokenPipeError, ConnectionResetError):
        return True


def test_clients_that_connect_before_the_server_runs_get_responses(folder: Path) -> None:
    server = Server(folder / "behind")
    with relayed(folder, server.start) as (relay, path), ThreadPoolExecutor(MANY) as clients:
        asked = [clients.submit(ask, path, b"%d" % number) for number in range(MANY)]
        server.may_start.set()
        assert [one.result() for one in asked] == [(b"%d" % number)[::-1] for number in range(MANY)]
        assert relay.failed is None
    assert (server.starts, server.stops) == (1, 1)


def test_large_requests_are_relayed_completely(folder: Path) -> None:
    server = Server(folder / "behind")
    server.may_start.set()
    request = bytes(range(256)) * 40_000
    with relayed(folder, server.start) as (_, path):
        assert ask(path, request) == request[::-1]


def test_a_connection_survives_garbage_collection(folder: Path) -> None:
    server = Server(folder / "behind", Tidy)
    server.may_start.set()
    with relayed(folder, server.start) as (_, path):
        assert ask(path, b"still there?") == b"still there?"


def test_the_server_notices_a_client_that_left_without_reading(folder: Path) -> None:
    server = Server(folder / "behind", Greeting)
    server.may_start.set()
    with relayed(folder, server.start) as (_, path):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(HANG_SECONDS)
        client.connect(path)
        assert client.recv(5, socket.MSG_PEEK)
        client.close()  # because of the unread bytes, this is a reset instead of an end of file
        assert Greeting.left.acquire(timeout=HANG_SECONDS)


def test_a_relay_that_cannot_listen_reports_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise OSError("no room for it")

    monkeypatch.setattr(asyncio, "start_unix_server", refuses)
    with relayed(folder, Server(folder / "behind").start) as (relay, _):
        scratch.wait_until(lambda: relay.failed is not None, "the failure")
    assert str(relay.failed) == "no room for it"


def test_without_a_client_no_server_is_started(folder: Path) -> None:
    server = Server(folder / "behind")
    with relayed(folder, server.start):
        pass
    assert (server.starts, server.stops) == (0, 0)


def test_a_server_that_starts_during_the_stop_is_stopped(folder: Path) -> None:
    server = Server(folder / "behind")
    with relayed(folder, server.start) as (_, path):
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        scratch.wait_until(lambda: any("asyncio" in one.name for one in threading.enumerate()), "the start")
        threading.Timer(0.2, server.may_start.set).start()
    client.close()
    assert (server.starts, server.stops) == (1, 1)


def test_a_server_that_cannot_start_is_reported(folder: Path) -> None:
    def fails() -> Callable[[], None]:
        raise OSError("no room")

    with relayed(folder, fails) as (relay, path):
        assert is_rejected(path)
        scratch.wait_until(lambda: relay.failed is not None, "the failure")
        assert str(relay.failed) == "no room"


@pytest.mark.parametrize("remains", [False, True])
def test_an_unreachable_server_is_reported(folder: Path, remains: bool) -> None:
    server = Server(folder / "behind")
    server.may_start.set()
    with relayed(folder, server.start) as (relay, path):
        assert ask(path, b"first") == b"tsrif"
        server.path.unlink()
        if remains:
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(server.path))
        assert is_rejected(path)
        scratch.wait_until(lambda: relay.failed is not None, "the failure")
        assert isinstance(relay.failed, ConnectionRefusedError if remains else FileNotFoundError)
    assert (server.starts, server.stops) == (1, 1)


def test_a_connection_during_the_stop_is_no_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connecting, stopped, refused = threading.Event(), threading.Event(), threading.Event()

    async def refuse(_: str) -> None:
        connecting.set()
        await asyncio.to_thread(stopped.wait, HANG_SECONDS)
        refused.set()
        raise FileNotFoundError

    def stop() -> None:
        stopped.set()
        refused.wait(HANG_SECONDS)

    monkeypatch.setattr(asyncio, "open_unix_connection", refuse)
    with relayed(folder, lambda: stop) as (relay, path), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        assert connecting.wait(HANG_SECONDS)
    assert refused.is_set()
    assert relay.failed is None


def test_a_socket_without_handlers_is_an_error(folder: Path) -> None:
    timing = unix_sockets.Timing(check_seconds=0.05, grace_seconds=0.05)
    path = folder / "kubelet.sock"

    def no_handlers() -> list[object]:
        raise OSError("no memory")

    failed: list[paths.SocketError] = []

    def serve() -> None:
        try:
            stop = threading.Event()
            unix_sockets.serve(path, no_handlers, lambda: None, stop, timing=timing)  # type: ignore[arg-type]
        except paths.SocketError as error:
            failed.append(error)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    scratch.wait_until(lambda: unix_sockets.identity(path) is not None, "the socket")
    ask(str(path), b"")
    thread.join(HANG_SECONDS)
    assert [str(one) for one in failed] == [f"{path}: cannot serve connections: no memory"]


def test_the_path_appears_only_once_the_socket_listens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "kubelet.sock"
    seen_before: list[bool] = []

    class Listener(socket.socket):
        def listen(self, *backlog: int) -> None:
            seen_before.append(path.exists())
            super().listen(*backlog)

    monkeypatch.setattr(unix_sockets, "stream_socket", Listener)
    with served(path):
        assert path.exists()
        assert [one.name for one in folder.iterdir() if one.is_socket()] == [path.name]
    assert seen_before[0] is False


def test_the_next_start_removes_a_hidden_socket_of_a_killed_process(folder: Path) -> None:
    dead, living = folder / ".new-1", folder / ".new-2"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(dead))
        killed.listen()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(living))
        other.listen()
        with served(folder / "kubelet.sock"):
            assert {one.name for one in folder.iterdir() if one.is_socket()} == {living.name, "kubelet.sock"}


class Stop(threading.Event):
    """An event that sets `awaited` once a thread waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.awaited.set()
        return super().wait(timeout)


@contextmanager
def served(path: Path, check_seconds: float = 1.0) -> Iterator[None]:
    """Run a server without connections; yield once it has checked its socket for the first time."""
    stop = Stop()
    timing = unix_sockets.Timing(check_seconds=check_seconds)

    def serve() -> None:
        unix_sockets.serve(path, list, lambda: None, stop, timing=timing)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert stop.awaited.wait(HANG_SECONDS)
    yield
    stop.set()
    thread.join(HANG_SECONDS)
    assert not thread.is_alive()


def test_the_socket_is_removed_at_the_end(folder: Path) -> None:
    path = folder / "kubelet.sock"
    with served(path):
        assert unix_sockets.identity(path)
    assert not path.exists()


def test_the_socket_of_another_process_is_not_removed_at_the_end(folder: Path) -> None:
    path = folder / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as other:
        with served(path, check_seconds=HANG_SECONDS):  # the socket is not checked again before the stop
            path.unlink()
            other.bind(str(path))
            theirs = unix_sockets.identity(path)
        assert theirs
        assert unix_sockets.identity(path) == theirs


def test_no_socket_loads_grpc_before_the_first_connection(folder: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", ALONE, str(folder)], check=True, capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert found.stderr.splitlines() == ["False False"] * 2, found.stderr
