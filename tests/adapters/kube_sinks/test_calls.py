"""A sink's response counts only if it is complete: tested over a real socket, with responses cut off at every byte."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from chronolet.adapters.kube_sinks.calls import HttpCaller, HttpResponse, Unreachable
from tests.support.scratch import HANG_SECONDS

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n"
OPEN_HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


@contextmanager
def sink(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the URL of a server that reads one request and then calls `answer` with the connection."""

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            got = b""
            while b"\r\n\r\n" not in got:
                if not (piece := client.recv(65536)):
                    return  # the caller timed out before it sent the request
                got += piece
            answer(client)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        served = pool.submit(serve)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
        served.result(HANG_SECONDS)


def called(text: bytes) -> HttpResponse:
    """Return the outcome of a call that gets `text` as its response, followed by the end of the connection."""
    with sink(lambda client: client.sendall(text)) as url:
        return HttpCaller(url, seconds=HANG_SECONDS)("POST", "", {}, b"")


@pytest.mark.parametrize("text", [HEAD + b"ok", OPEN_HEAD + b"ok", CHUNKED], ids=["length", "open", "chunked"])
def test_a_complete_response_counts(text: bytes) -> None:
    assert (called(text).status, called(text).body) == (200, b"ok")


@pytest.mark.parametrize("size", range(len(OPEN_HEAD)))
def test_a_response_cut_in_its_head_does_not_count(size: int) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        called(OPEN_HEAD[:size])


@pytest.mark.parametrize("missing", range(1, 5))
def test_a_response_shorter_than_its_length_does_not_count(missing: int) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        called((HEAD + b"ok")[:-missing])


@pytest.mark.parametrize("missing", range(1, 12))
def test_a_truncated_chunked_response_does_not_count(missing: int) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        called(CHUNKED[:-missing])


@pytest.mark.parametrize(
    "text",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nlong: " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"many: x\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
    ids=["garbage", "no-number", "version", "long-line", "many-lines", "only-continue"],
)
def test_a_malformed_response_does_not_count(text: bytes) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        called(text)


@pytest.mark.parametrize(
    "text", [b"HTTP/1.1 200 OK\r\nA: b\r\n", OPEN_HEAD + b"ok"], ids=["in-the-head", "in-the-body"]
)
def test_a_response_cut_by_the_timeout_does_not_count(text: bytes) -> None:
    """The server sends single bytes: each read succeeds in time, but the response as a whole takes too long."""
    done = threading.Event()

    def drip(client: socket.socket) -> None:
        with suppress(OSError):  # the caller has disconnected
            client.sendall(text)
            while not done.wait(0.05):
                client.sendall(b"x")

    with sink(drip) as url:
        try:
            with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
                HttpCaller(url, seconds=0.5)("POST", "", {}, b"")
        finally:
            done.set()
