"""HTTP probes against real servers, good and bad: one reading each, in time, with the kubelet's texts."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.probes.probing import Probes, Script, Server
from tests.support.scratch import HANG_SECONDS

Serve = Callable[[Script], Server]


def response(raw: bytes) -> Script:
    return lambda connection, _: connection.sendall(raw)


def status(number: int, *fields: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {number} Word", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def chain(*answers: bytes) -> Script:
    """Return a script that sends these responses in turn."""
    left = list(answers)
    return lambda connection, _: connection.sendall(left.pop(0))


@pytest.mark.parametrize(("number", "result"), [(200, "success"), (201, "success"), (304, "warning"), (400, "failure")])
def test_the_status_decides(probes: Probes, serve: Serve, number: int, result: str) -> None:
    reading = probes.get(serve(response(status(number, body=b"words" if number != 304 else b""))).port)
    assert (reading.result, reading.code) == (result, number)
    if result == "failure":
        assert reading.output == f"HTTP probe failed with statuscode: {number}"
    if result == "success":
        assert reading.output == "words"


def test_the_request_line_and_headers(probes: Probes, serve: Serve) -> None:
    server = serve(response(status(200)))
    headers = (("x-mine", "1"), ("X-Mine", "2"), ("host", "shop.test"), ("accept", ""), ("User-Agent", "me"))
    probes.get(server.port, "/a b?c=\u00e4", headers=headers)
    probes.get(server.port, "")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"GET /a%20b?c=%C3%A4 HTTP/1.1",
        b"Host: shop.test",
        b"X-Mine: 1",
        b"X-Mine: 2",
        b"User-Agent: me",
        b"Connection: close",
    ]
    assert body == b""
    assert server.requests[1].startswith(
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: kube-probe/" % server.port
    )


def test_a_header_with_a_line_break_is_not_sent(probes: Probes, serve: Serve) -> None:
    server = serve(response(status(200)))
    reading = probes.get(server.port, headers=(("X", "a\r\nY: b"),))
    assert (reading.result, server.requests) == ("failure", [])
    assert 'invalid header field name or value for "X"' in reading.output


def test_redirects_within_the_host_are_followed_with_the_same_headers(probes: Probes, serve: Serve) -> None:
    other = serve(response(status(200, body=b"there")))
    server = serve(chain(status(301, "Location: /new"), status(308, f"Location: http://127.0.0.1:{other.port}/ok")))
    reading = probes.get(server.port, headers=(("Host", "shop.test"),))
    assert (reading.result, reading.output) == ("success", "there")
    asked = [request.split(b"\r\n")[:2] for request in (*server.requests, *other.requests)]
    hosts = b"Host: shop.test"
    assert asked == [[b"GET / HTTP/1.1", hosts], [b"GET /new HTTP/1.1", hosts], [b"GET /ok HTTP/1.1", hosts]]


def test_hosts_of_redirects_are_compared_without_case(probes: Probes, serve: Serve) -> None:
    other = serve(response(status(200, body=b"there")))
    server = serve(response(status(301, f"Location: http://localHOST:{other.port}/ok")))
    for host in ("LocalHost", "localhost"):
        reading = probes.get(server.port, host=host)
        assert (reading.result, reading.output) == ("success", "there")


def test_a_redirect_to_another_host_is_a_warning(probes: Probes, serve: Serve) -> None:
    server = serve(response(status(302, "Location: http://example.test/fail", body=b"moved")))
    reading = probes.get(server.port)
    assert (reading.result, reading.output) == ("warning", "Probe terminated redirects, Response body: moved")
    assert len(server.requests) == 1


def test_a_redirect_loop_ends_after_ten_requests(probes: Probes, serve: Serve) -> None:
    server = serve(response(status(302, "Location: /round")))
    reading = probes.get(server.port)
    assert (reading.result, len(server.requests)) == ("failure", 10)
    assert reading.output == f'Get "http://127.0.0.1:{server.port}/round": stopped after 10 redirects'


def test_all_redirects_share_the_timeout_of_the_probe(probes: Probes, serve: Serve) -> None:
    def slow(connection: socket.socket, _: bytes) -> None:
        time.sleep(1.0)
        connection.sendall(status(302, "Location: /round"))

    server = serve(slow)
    reading = probes.get(server.port, "/round", seconds=2.5)
    assert (reading.result, AWAITING in reading.output) == ("failure", True)
    assert len(server.requests) < 10, "the time-out ends it, not the number of redirects"


def test_a_malformed_redirect_is_a_failure(probes: Probes, serve: Serve) -> None:
    reading = probes.get(serve(response(status(302, "Location: http://[oops/"))).port)
    assert reading.result == "failure"
    assert 'failed to parse Location header "http://[oops/"' in reading.output


def endless(piece: bytes, head: bytes = b"HTTP/1.1 200 OK\r\n", pause: float = 0.0) -> Script:
    def script(connection: socket.socket, _: bytes) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return script


def stays_silent(connection: socket.socket, _: bytes) -> None:
    connection.recv(1)


def dies(connection: socket.socket, _: bytes) -> None:
    """Reset the connection in the middle of the response, as when the container is killed."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


AWAITING = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
IN_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
BAD: dict[str, tuple[Script, str]] = {
    "never answers": (stays_silent, AWAITING),
    "closes immediately": (response(b""), "EOF"),
    "closes in its head": (response(b"HTTP/1.1 200 OK\r\nContent-"), "unexpected EOF"),
    "closes in its body": (response(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), "unexpected EOF"),
    "speaks no HTTP": (response(b"SSH-2.0-x\r\n"), 'malformed HTTP response "SSH-2.0-x"'),
    "sends headers endlessly": (endless(b"X: y\r\n" * 1000), "headers exceeded"),
    "sends an endless header": (endless(b"y" * 10_000), "headers exceeded"),
    "sends interim responses endlessly": (endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b""), "headers exceeded"),
    "dies": (dies, "connection reset by peer"),
    "has endless chunk lines": (
        endless(b"1", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", pause=0.01),
        IN_BODY,
    ),
    "dribbles headers": (endless(b"X: y\r\n", pause=0.01), AWAITING),
    "dribbles its body": (endless(b"x", b"HTTP/1.1 200 OK\r\n\r\n", pause=0.01), IN_BODY),
}


@pytest.mark.parametrize("how", BAD)
def test_a_bad_server_is_a_failure_in_time(probes: Probes, serve: Serve, how: str) -> None:
    script, text = BAD[how]
    # The time-out is short only for servers that reach it; it is long enough for what they send before.
    reading = probes.get(serve(script).port, seconds=3.0 if text in (AWAITING, IN_BODY) else HANG_SECONDS)
    assert reading.result == "failure"
    assert text in reading.output


def test_an_endless_body_is_truncated_and_a_success(probes: Probes, serve: Serve) -> None:
    reading = probes.get(serve(endless(b"x" * 5000, b"HTTP/1.1 200 OK\r\n\r\n")).port)
    assert (reading.result, len(reading.output)) == ("success", 10_240)


def test_a_server_that_does_not_read_times_out(probes: Probes, serve: Serve) -> None:
    server = serve(stays_silent)
    reading = probes.get(server.port, seconds=0.5, headers=tuple((f"X-{n}", "x" * 8000) for n in range(1500)))
    assert reading.result == "failure"


def test_a_malformed_length_or_host_is_a_failure(probes: Probes, serve: Serve) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n"
    reading = probes.get(serve(response(answer)).port)
    assert (reading.result, "bad Content-Length" in reading.output) == ("failure", True)
    reading = probes.get(serve(response(status(200))).port, scheme="https", host="127.0.0.1.")
    assert reading.result == "failure"


def test_a_refused_connection_is_a_failure(probes: Probes) -> None:
    port = free_port()
    reading = probes.get(port)
    assert reading.result == "failure"
    assert reading.output == (f'Get "http://127.0.0.1:{port}/": dial tcp 127.0.0.1:{port}: connect: connection refused')


def test_host_names_are_resolved(probes: Probes, serve: Serve) -> None:
    server = serve(response(status(200)))
    assert probes.get(server.port, host="localhost").result == "success"
    reading = probes.get(server.port, host="no-such-host.invalid")
    assert reading.result == "failure"
    assert "dial tcp: lookup no-such-host.invalid: " in reading.output
    assert probes.get(server.port, host="x" * 70 + ".test").result == "failure"


def test_a_host_name_without_a_thread_to_resolve_it_is_an_error(
    probes: Probes, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        reading = probes.get(1, host="localhost")
    assert (reading.result, "resource temporarily unavailable" in reading.output) == ("error", True)
    assert probes.get(serve(response(status(200))).port, host="localhost").result == "success"


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    """Return a server's TLS settings with a self-signed certificate."""
    key, cert = tmp_path / "key", tmp_path / "cert"
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        cert,
        "-days",
        "1",
        "-subj",
        "/CN=x",
    ]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


def test_a_certificate_is_not_checked(probes: Probes, serve: Serve, certificate: ssl.SSLContext) -> None:
    server = serve(response(status(200, body=b"x" * 30_000)))
    server.tls = certificate
    reading = probes.get(server.port, scheme="https")
    assert (reading.result, len(reading.output)) == ("success", 10_240)
    assert probes.get(server.port, scheme="https", host="localhost").result == "success"
    assert probes.get(server.port, seconds=1.0).result == "failure"


def test_https_to_a_server_without_tls_and_to_a_silent_one(probes: Probes, serve: Serve) -> None:
    plain = serve(response(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    reading = probes.get(plain.port, scheme="https")
    assert reading.result == "failure"
    assert "server gave HTTP response to HTTPS client" in reading.output
    assert probes.get(serve(stays_silent).port, scheme="https", seconds=0.5).result == "failure"
    assert "EOF" in probes.get(serve(response(b"")).port, scheme="https").output
