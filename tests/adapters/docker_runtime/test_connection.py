"""The Docker adapter without Docker: with no server, with a server that is not Docker, and with a silent server."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.connection import Connection
from chronolet.ports.runtime.runtime import Refusal
from tests.support.scratch import HANG_SECONDS


@contextmanager
def listening(folder: Path, answer: bytes | None) -> Iterator[str]:
    """Yield the URL of a server that sends this reply on every connection; if `answer` is None, it sends nothing."""
    path = folder / "sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                kept.append(connection)
                if answer is not None:
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(HANG_SECONDS)
            for connection in kept:
                connection.close()


def refusal(host: str, timeout_seconds: float = HANG_SECONDS) -> Refusal:
    runtime = DockerRuntime(host, timeout_seconds=timeout_seconds)
    with pytest.raises(Refusal) as caught:
        runtime.engine()
    runtime.close()
    return caught.value


def test_a_missing_server_is_unavailable(tmp_path: Path) -> None:
    error = refusal(f"unix://{tmp_path}/none")
    assert error.kind == "unavailable"
    assert f"{tmp_path}/none" in str(error)


def test_a_remote_engine_is_refused() -> None:
    with pytest.raises(Refusal, match="expected unix://") as caught:
        DockerRuntime("tcp://192.0.2.1:2375")
    assert caught.value.kind == "invalid"


def test_a_silent_server_times_out(tmp_path: Path) -> None:
    with listening(tmp_path, None) as host:
        assert refusal(host, timeout_seconds=0.2).kind == "timeout"


def test_a_server_that_hangs_up_is_unavailable(tmp_path: Path) -> None:
    with listening(tmp_path, b"") as host:
        assert refusal(host).kind == "unavailable"


@pytest.mark.parametrize("body", [b"{}", b"hello", b'{"ApiVersion": "new"}'])
def test_another_server_is_recognized(tmp_path: Path, body: bytes) -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
    with listening(tmp_path, reply) as host:
        error = refusal(host)
    assert error.kind == "failed"
    assert "not a Docker Engine" in str(error)


@pytest.mark.parametrize(("idle_seconds", "bound"), [(None, 30.0), (7.0, 30.0), (120.0, 120.0)])
def test_the_head_of_a_stream_has_the_time_out_of_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle_seconds: float | None, bound: float
) -> None:
    read_head = http.client.HTTPConnection.getresponse
    bounds: list[float | None] = []

    def noting(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        bounds.append(connection.sock.gettimeout())
        return read_head(connection)

    monkeypatch.setattr(http.client.HTTPConnection, "getresponse", noting)
    body = b'{"ApiVersion": "1.41"}'
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
    with listening(tmp_path, reply) as host:
        connection = Connection(host, timeout_seconds=30.0)
        assert connection.call("GET", "/info") == body  # the API version has been negotiated
        bounds.clear()
        stream = connection.open("POST", "/images/create", idle_seconds=idle_seconds)
        assert stream.read_some() == body
        assert bounds == [bound]
        stream.release()
        connection.close()
