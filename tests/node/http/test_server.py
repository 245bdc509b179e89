"""The HTTP server: pages, health checks that respond whatever clients do, and no work without requests."""

import contextlib
import http.client
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from chronolet.node.health import Health
from chronolet.node.http.server import HttpServer, Query, Response, health_pages
from chronolet.node.http.slots import CONNECTIONS
from chronolet.node.settings.values import SettingsError
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS


def failing(query: Query) -> Response:
    raise ZeroDivisionError


def unreadable(query: Query) -> Response:
    raise FileNotFoundError(2, "No such file or directory", "/nowhere")


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def server(health: Health) -> Iterator[HttpServer]:
    pages = {**health_pages(health), "/fails": failing, "/unreadable": unreadable}
    served = HttpServer("127.0.0.1", 0, pages, head_seconds=HANG_SECONDS)
    served.start()
    yield served
    served.stop()


def get(server: HttpServer, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_SECONDS)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_healthz_is_ok_while_all_checks_pass(server: HttpServer, health: Health) -> None:
    health.add("syncloop", lambda: "")
    assert get(server, "/healthz") == (200, "ok")
    assert get(server, "/healthz/syncloop") == (200, "ok")
    assert get(server, "/healthz?verbose") == (200, "[+]ping ok\n[+]syncloop ok\nhealthz check passed\n")


def test_a_passing_check_may_have_a_message(server: HttpServer, health: Health) -> None:
    health.add("phase", lambda: "", ready_only=True, remark=lambda: "standing by")
    assert get(server, "/readyz") == (200, "ok")
    assert get(server, "/readyz?verbose") == (200, "[+]ping ok\n[+]phase ok: standing by\nreadyz check passed\n")


def test_a_failing_check_is_named_with_its_reason(server: HttpServer, health: Health) -> None:
    health.add("pleg", lambda: "PLEG was last seen active 4m ago")
    expected = "[+]ping ok\n[-]pleg failed: PLEG was last seen active 4m ago\nhealthz check failed\n"
    assert get(server, "/healthz") == (500, expected)
    assert get(server, "/healthz/ping") == (200, "ok")
    health.remove("pleg")
    assert get(server, "/healthz") == (200, "ok")


def test_a_part_that_has_not_started_makes_the_process_unready_and_not_unhealthy(
    server: HttpServer, health: Health
) -> None:
    health.add("recovered", lambda: "recovering", ready_only=True)
    assert get(server, "/healthz")[0] == 200
    assert get(server, "/readyz")[0] == 500
    assert get(server, "/healthz/recovered")[0] == 404


def test_unknown_pages_name_the_known_ones(server: HttpServer) -> None:
    assert get(server, "/pods") == (404, "/pods: not found; the pages are /fails, /healthz, /readyz, /unreadable\n")
    assert get(server, "/healthz", "POST")[0] == 501
    assert get(server, "/healthz", "HEAD") == (200, "")


@pytest.mark.parametrize("path", ["/fails", "/unreadable"])
def test_a_failing_page_is_answered_and_logged(server: HttpServer, path: str) -> None:
    with capture_logs() as lines:
        assert get(server, path) == (500, f"{path} failed: see the error in the agent's log\n")
    assert [(one["event"], one["path"], one["log_level"]) for one in lines] == [("a page failed", path, "error")]


def test_the_server_survives_failing_pages_and_misbehaving_clients(server: HttpServer) -> None:
    assert get(server, "/fails")[0] == 500
    with socket.create_connection(("127.0.0.1", server.port)) as rude:
        rude.sendall(b"\x00\xff\r\n\r\n")
    assert get(server, "/healthz") == (200, "ok")


def raw(server: HttpServer, request: bytes) -> bytes:
    """Send a request and return everything that the server sends until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_SECONDS) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_idle_connections_do_not_block_health_checks(server: HttpServer) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=HANG_SECONDS) for _ in range(CONNECTIONS + 72)]
    for _ in range(5):
        assert get(server, "/healthz") == (200, "ok")
    assert idle[0].recv(1) == b""  # the server has closed the oldest connection
    for one in idle:
        one.close()


def test_slow_pages_do_not_block_health_checks() -> None:
    made, go_on = threading.Semaphore(0), threading.Event()

    def slow(_query: Query) -> Response:
        made.release()
        assert go_on.wait(HANG_SECONDS)
        return Response(200, b"slow")

    pages = {**health_pages(Health()), "/pods": slow, "/metrics": slow}
    server = HttpServer("127.0.0.1", 0, pages, head_seconds=HANG_SECONDS)
    server.start()
    waiting = [socket.create_connection(("127.0.0.1", server.port), timeout=HANG_SECONDS) for _ in range(36)]
    try:
        for number, one in enumerate(waiting):
            one.sendall(b"GET /pods HTTP/1.0\r\n\r\n" if number < 24 else b"GET /metrics HTTP/1.0\r\n\r\n")
            assert made.acquire(timeout=HANG_SECONDS)
        assert get(server, "/pods")[0] == get(server, "/metrics")[0] == 503
        idle = [socket.create_connection(("127.0.0.1", server.port), timeout=HANG_SECONDS) for _ in range(CONNECTIONS)]
        assert get(server, "/healthz") == (200, "ok")
        go_on.set()
        assert all(one.recv(65536).startswith(b"HTTP/1.1 200 ") for one in waiting)  # no slow page was interrupted
        for one in (*waiting, *idle):
            one.close()
    finally:
        go_on.set()
        server.stop()


def test_a_request_head_has_one_deadline_however_often_a_byte_arrives() -> None:
    server = HttpServer("127.0.0.1", 0, health_pages(Health()), head_seconds=0.5)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_SECONDS) as dripping:
            hang = time.monotonic() + HANG_SECONDS
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # closed while a byte was sent
                while not select.select([dripping], [], [], 0.05)[0]:
                    assert time.monotonic() < hang
                    dripping.sendall(b"G")
                assert dripping.recv(1) == b""
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET http://[::1/healthz HTTP/1.0\r\n\r\n", 400),
        (b"GET http://127.0.0.1:x/healthz HTTP/1.0\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403),
        (b"GET /healthz HTTP/1.0\r\n" + b"a: %s\r\n" % (b"x" * 9000) * 8 + b"\r\n", 431),
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nContent-Length: 20\r\n\r\nGET /fails HTTP/1.1\r\n", 200),
    ],
)
def test_refused_requests_are_answered_and_not_logged(
    server: HttpServer, capfd: pytest.CaptureFixture[str], request_head: bytes, status: int
) -> None:
    answer = raw(server, request_head)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_connection_serves_several_requests(server: HttpServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_SECONDS)
    connection.connect()
    first = connection.sock
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok"
        assert connection.sock is first
    connection.close()


def test_a_port_in_use_is_reported_in_one_line(server: HttpServer) -> None:
    with pytest.raises(SettingsError) as error:
        HttpServer("127.0.0.1", server.port, {})
    assert str(error.value) == (
        f"--address 127.0.0.1 --port {server.port}: cannot listen there: Address already in use; "
        "choose another port, or 0 for no HTTP server"
    )


def test_the_waiting_thread_sleeps_and_stops_immediately() -> None:
    server = HttpServer("127.0.0.1", 0, {})
    server.start()
    thread = next(one for one in threading.enumerate() if one.name == "http" and one.is_alive())
    call = Path(f"/proc/self/task/{thread.native_id}/syscall")
    # epoll_wait's fourth argument is its time-out; -1 means none.
    scratch.wait_until(lambda: (call.read_text().split()[4:5] or [""])[0].endswith("ffffffff"), "an endless sleep")
    server.stop()
    assert not thread.is_alive()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port))


def test_the_server_listens_on_ipv6_too() -> None:
    server = HttpServer("::1", 0, health_pages(Health()))
    server.start()
    try:
        connection = http.client.HTTPConnection("::1", server.port, timeout=HANG_SECONDS)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok"
        connection.close()
    finally:
        server.stop()


@pytest.mark.parametrize("address", ["no.such.host.invalid", "203.0.113.1", "not an address"])
def test_an_unusable_address_is_reported_in_one_line(address: str) -> None:
    with pytest.raises(SettingsError) as error:
        HttpServer(address, 0, {})
    assert str(error.value).startswith(f"--address {address} --port 0: cannot listen there: ")
    assert "\n" not in str(error.value)


def test_the_server_resolves_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_: str) -> str:
        raise AssertionError

    monkeypatch.setattr(socket, "getfqdn", slow)
    HttpServer("127.0.0.1", 0, {}).stop()
