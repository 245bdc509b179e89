"""TCP and gRPC probes against real servers."""

from __future__ import annotations

import contextlib
import itertools
import queue
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from chronolet.adapters.probes.handlers import grpc as grpc_handler
from chronolet.adapters.probes.probing import GRPC_SLOTS
from chronolet.ports.pods.probes import Attempt, GrpcTarget, Reading, TcpTarget
from tests.support.ports import free_port
from tests.support.probes.probing import Probes, Script, Server
from tests.support.scratch import HANG_SECONDS, wait_until

Serve = Callable[[Script], Server]


def test_an_accepted_connection_is_a_success(probes: Probes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        reading = probes.ask(TcpTarget(host="127.0.0.1", port=port))
        assert (reading.result, reading.output, reading.code) == ("success", "", None)
        connection, _ = listener.accept()
        with connection, pytest.raises(ConnectionResetError):
            connection.recv(1)


def in_time_wait(port: int) -> int:
    """Return the number of closed connections to a port that the machine still remembers (TIME_WAIT)."""
    lines = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(fields[2].endswith(f":{port:04X}") and fields[3] == "06" for fields in lines)


def test_no_connection_stays_in_time_wait(probes: Probes, serve: Serve) -> None:
    """At 330 probes per second, 20,000 connections would otherwise be in TIME_WAIT. The test's server leaves closing to
    the client.
    """

    def answers(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        connection.recv(1)

    server = serve(answers)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for _ in range(10):
            assert probes.ask(TcpTarget(host="127.0.0.1", port=port)).result == "success"
            assert probes.get(server.port).result == "success"
        assert in_time_wait(port) + in_time_wait(server.port) == 0
        with socket.create_connection(("127.0.0.1", port)):
            pass
        for _ in range(11):
            listener.accept()[0].close()
        wait_until(lambda: in_time_wait(port) == 1, "a connection that was closed as usual")


def test_a_refused_connection_is_a_failure(probes: Probes) -> None:
    port = free_port()
    reading = probes.ask(TcpTarget(host="127.0.0.1", port=port))
    assert reading.result == "failure"
    assert reading.output == f"dial tcp 127.0.0.1:{port}: connect: connection refused"


def test_lack_of_descriptors_is_an_error_and_no_failure(probes: Probes, serve: Serve) -> None:
    well: Script = lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")  # noqa: E731
    server = serve(well)
    assert probes.get(server.port).result == "success"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        http = probes.get(server.port)
        tcp = probes.ask(TcpTarget(host="127.0.0.1", port=server.port))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (http.result, tcp.result) == ("error", "error")
    assert "too many open files" in http.output
    assert probes.get(serve(well).port).result == "success"


@contextlib.contextmanager
def full() -> Iterator[int]:
    """Yield the port of a listener that neither accepts nor refuses more connections."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_a_connection_that_is_never_established_times_out(probes: Probes) -> None:
    with full() as port:
        reading = probes.ask(TcpTarget(host="127.0.0.1", port=port), 0.5)
    assert (reading.result, reading.output) == ("failure", f"dial tcp 127.0.0.1:{port}: i/o timeout")


# -- gRPC --------------------------------------------------------------------------------------------------------------


class Health:
    """A real server with gRPC's own health service."""

    def __init__(self, servicer: health_pb2_grpc.HealthServicer | None = None, *, with_service: bool = True) -> None:
        self.workers = ThreadPoolExecutor(2)
        self.server = grpc.server(self.workers)
        self.servicer = servicer or health.HealthServicer()
        if with_service:
            health_pb2_grpc.add_HealthServicer_to_server(self.servicer, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def close(self) -> None:
        self.server.stop(0).wait()
        self.workers.shutdown()

    def set(self, status: str, service: str = "") -> None:
        self.servicer.set(service, health_pb2.HealthCheckResponse.ServingStatus.Value(status))

    def target(self, service: str = "") -> GrpcTarget:
        return GrpcTarget(host="127.0.0.1", port=self.port, service=service)


@pytest.fixture(scope="module", autouse=True)
def grpc_runs() -> Iterator[None]:
    """Start grpc's threads before the tests, because they exist from its first call until the process ends."""
    server = Health()
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=HANG_SECONDS, wait_for_ready=True
        )
    yield
    server.close()


@pytest.fixture
def server() -> Iterator[Health]:
    made = Health()
    yield made
    made.close()


def test_the_health_service_decides(probes: Probes, server: Health) -> None:
    server.set("SERVING")
    server.set("NOT_SERVING", "slow")
    assert probes.ask(server.target()).output == "service healthy"
    reading = probes.ask(server.target("slow"))
    assert (reading.result, reading.output) == ("failure", 'service unhealthy (responded with "NOT_SERVING")')
    server.set("SERVING", "slow")
    assert probes.ask(server.target("slow")).result == "success"
    reading = probes.ask(server.target("none"))
    assert reading.result == "failure"
    assert "code = NotFound" in reading.output


def test_a_server_without_the_health_service(probes: Probes) -> None:
    bare = Health(with_service=False)
    reading = probes.ask(bare.target())
    bare.close()
    assert reading.result == "failure"
    assert reading.output.startswith("error: this server does not implement the grpc health protocol")


def test_the_status_unavailable_is_not_retried(probes: Probes) -> None:
    calls: list[str] = []

    class Unavailable(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
        def Check(self, _: object, context: grpc.ServicerContext) -> None:  # noqa: N802 - gRPC's name
            calls.append("Check")
            context.abort(grpc.StatusCode.UNAVAILABLE, "not today")

    server = Health(Unavailable())
    reading = probes.ask(server.target())
    server.close()
    assert reading.result == "failure"
    assert reading.output == "error: health rpc probe failed: rpc error: code = Unavailable desc = not today"
    assert calls == ["Check"]


def test_a_cancelled_attempt_ends_immediately(probes: Probes, serve: Serve) -> None:
    asked, attempts, found = threading.Event(), list[Attempt](), list[Reading]()

    def silent(connection: socket.socket, _: bytes) -> None:
        asked.set()
        connection.recv(1)

    target = GrpcTarget(host="127.0.0.1", port=serve(silent).port)
    probes.prober.soon(lambda: attempts.append(probes.prober.begin(target, 60, found.append, lambda: True)))
    assert asked.wait(HANG_SECONDS)
    probes.cancel(attempts)
    wait_until(lambda: not [one for one in threading.enumerate() if one.name == "grpc probe"], "the end of the thread")
    assert found == []


class TenSecondSteps:
    """A clock that advances by ten seconds at each reading: the retries end after a few calls, although each call has a
    time-out of ten seconds or more.
    """

    def __init__(self) -> None:
        self._readings = itertools.count(0, 10)

    def monotonic(self) -> float:
        return next(self._readings)


def test_a_missing_server_is_retried_until_the_timeout(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_handler, "time", TenSecondSteps())
    port = free_port()
    reading = probes.ask(GrpcTarget(host="127.0.0.1", port=port), 60)
    assert reading.result == "failure"
    assert reading.output.startswith(f'timeout: failed to connect service "127.0.0.1:{port}" within 1m0s')


def garbage(connection: socket.socket, _: bytes) -> None:
    while True:
        connection.sendall(b"\x00" * 10_000)


def dies(connection: socket.socket, _: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


BAD: dict[str, Script] = {
    "is silent": lambda connection, _: connection.recv(1) and None,
    "speaks no gRPC": lambda connection, _: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "closes immediately": lambda _, __: None,
    "dies": dies,
    "sends endlessly": garbage,
}


@pytest.mark.parametrize("how", BAD)
def test_a_bad_grpc_server_is_a_failure_in_time(probes: Probes, serve: Serve, how: str) -> None:
    reading = probes.ask(GrpcTarget(host="127.0.0.1", port=serve(BAD[how]).port), 0.5)
    assert reading.result == "failure"
    assert reading.output.startswith("timeout: "), reading.output


def test_silent_servers_do_not_block_other_probes(probes: Probes, serve: Serve, server: Health) -> None:
    """There are more such servers than slots, each with a time-out of an hour."""
    server.set("SERVING")
    silent = GrpcTarget(host="127.0.0.1", port=serve(BAD["is silent"]).port)
    found: queue.Queue[Reading] = queue.Queue()
    attempts: list[Attempt] = []

    def begin() -> None:
        attempts.extend(
            probes.prober.begin(silent, 3600, found.put, lambda: True, probe=f"{number}")
            for number in range(GRPC_SLOTS + 1)
        )
        probes.prober.begin(server.target(), HANG_SECONDS, found.put, lambda: True, probe="well")

    probes.prober.soon(begin)
    assert found.get(timeout=HANG_SECONDS).output == "service healthy"
    probes.cancel(attempts)
    wait_until(lambda: "grpc probe" not in [one.name for one in threading.enumerate()], "the end of all threads")
    assert found.empty()
