"""Malicious clients of the agent's HTTP server: /healthz always responds, and no connection remains open."""

from __future__ import annotations

import http.client
import random
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.attacks.attacked import Attacked
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

GARBAGE = (
    b"GET http://[::1/healthz HTTP/1.0\r\n\r\n",
    b"GET /healthz\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500,
    b"GET /%00%ff/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    b"GET /pods HTTP/9.9\r\n\r\n",
    b"POST /pods HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
)


def status(attacked: Attacked, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", attacked.port, timeout=HANG_SECONDS)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def send(attacked: Attacked, data: bytes) -> None:
    """Send data and read the response to the end."""
    with socket.create_connection(("127.0.0.1", attacked.port), timeout=HANG_SECONDS) as one, suppress(ConnectionError):
        one.sendall(data)
        with suppress(OSError):  # the agent has already closed it
            one.shutdown(socket.SHUT_WR)
        while one.recv(65536):
            pass


@contextmanager
def idle(attacked: Attacked, count: int, data: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as opened:
        found = [socket.create_connection(("127.0.0.1", attacked.port), timeout=HANG_SECONDS) for _ in range(count)]
        for one in found:
            opened.callback(one.close)
            with suppress(ConnectionError):  # the agent has closed it in favour of another one
                one.sendall(data)
        yield found


def holds_connection(attacked: Attacked) -> bool:
    """Return whether the agent has any connection open. Opens a new one first, since the agent closes older ones."""
    with idle(attacked, 1, b"G"):
        return attacked.connections() > 0


def test_health_is_served_and_no_connection_is_left(attacked: Attacked) -> None:
    assert status(attacked, "/healthz") == 200

    with idle(attacked, 200, b"GET /healthz HTTP/1.1\r\n"):
        scratch.wait_until(lambda: holds_connection(attacked), "a connection that the agent holds")
        assert [status(attacked, "/healthz") for _ in range(5)] == [200] * 5
        assert status(attacked, "/metrics") == 200

    for data in (*GARBAGE, *(random.Random(number).randbytes(300) for number in range(20))):
        send(attacked, data)
    assert status(attacked, "/healthz") == 200

    assert status(attacked, "/pods", Host="evil.example") == 421
    assert status(attacked, "/pods", Origin="http://evil.example") == 403
    assert status(attacked, "/pods", Host=f"localhost:{attacked.port}") == 200

    with ThreadPoolExecutor(16) as flood:
        flooded = [flood.submit(status, attacked, page) for page in ("/pods", "/stats/summary", "/metrics", "/") * 30]
        assert [status(attacked, "/healthz") for _ in range(10)] == [200] * 10
        assert {one.result(HANG_SECONDS) for one in flooded} <= {200, 404, 503}

    scratch.wait_until(lambda: attacked.connections() == 0, "the end of all connections", 60)
    attacked.assert_well()


def test_an_address_that_other_machines_reach_is_refused(attacked: Attacked) -> None:
    refused = attacked.chronolet("run", "--address", "0.0.0.0", "--port", str(attacked.port))
    assert refused.status != 0
    assert "--address 0.0.0.0: other machines could read every pod there" in refused.err + refused.out


@pytest.mark.long
def test_a_slow_request_head_is_cut_off(attacked: Attacked) -> None:
    with idle(attacked, 60, b"G") as slow_clients:
        for one in slow_clients:
            one.settimeout(HANG_SECONDS)
            with suppress(ConnectionError):
                assert one.recv(1) == b""
        assert status(attacked, "/healthz") == 200
