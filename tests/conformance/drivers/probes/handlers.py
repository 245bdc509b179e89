"""Runs the cases of probes.json about a single attempt: the request that is sent, and the reading of its answer.

HTTP, TCP and gRPC probes are sent to real servers on this machine, whose address takes the place of the pod's; commands
run on the product's fake runtime. Time-outs are shortened; an answer that must exceed its time-out is held back until
the probe has returned a reading.
"""

from __future__ import annotations

import contextlib
import errno
import queue
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from chronolet.adapters.fakes.runtime import FakeRuntime, Program
from chronolet.adapters.http import texts
from chronolet.adapters.probes import Probing
from chronolet.adapters.probes.handlers import dial
from chronolet.adapters.probes.handlers.http import head
from chronolet.ports.pods.probes import ExecTarget, GrpcTarget, HttpTarget, Reading, Target, TcpTarget
from chronolet.ports.pods.requests import Request
from chronolet.ports.runtime.runtime import Refusal
from chronolet.prober.outcomes import MOST_ATTEMPTS
from chronolet.prober.targets import target
from chronolet_schemas import kube_events
from chronolet_schemas.podspec import HTTPGetAction, HTTPHeader, Probe
from tests.conformance.drivers.probes.decisions import Ticks
from tests.conformance.drivers.probes.scripted_prober import ScriptedProber
from tests.conformance.outcome import Case, differences
from tests.support.probes.probing import Server, running
from tests.support.scratch import HANG_SECONDS

_HERE = "127.0.0.1"
_SHORTER = 10
_REASON = b"HTTP/1.1 %d Word\r\n"


@contextlib.contextmanager
def _prober(runtime: FakeRuntime | None = None) -> Iterator[Probing]:
    prober = Probing(runtime or FakeRuntime())
    try:
        yield prober
    finally:
        prober.stop()


def _probed(probed: Target, case: Case, runtime: FakeRuntime | None = None) -> Reading:
    """Probe once and return the reading. The time-out is the case's, divided by `_SHORTER`; for a case without one, it
    is `patience_seconds`, or else HANG_SECONDS.
    """
    given = case["given"]
    patience = case.get("patience_seconds", HANG_SECONDS)
    seconds = given["timeout_seconds"] / _SHORTER if "timeout_seconds" in given else patience
    found: queue.Queue[Reading] = queue.Queue()
    with _prober(runtime) as prober:
        prober.soon(lambda: prober.begin(probed, seconds, found.put, lambda: True))
        return found.get(timeout=2 * HANG_SECONDS)


def _shown(reading: Reading) -> dict[str, Any]:
    """Return a reading in the form of the vectors, with the published result and the decider's events."""
    decided = _decided(reading.result, reading.output)
    return {
        "result": "unknown" if reading.result == "error" else reading.result,
        "published": decided["result"],
        "error": reading.result == "error",
        "events": decided["events"],
        "output": "" if reading.result == "error" else reading.output,
        "output_bytes": len(reading.output),
        "body_bytes_kept": len(reading.output),
    }


# -- HTTP --------------------------------------------------------------------------------------------------------------


def _http_probe(case: Case) -> Iterable[str]:
    given, answers = case["given"], _answers(case["given"])
    assert given.get("answer_after_seconds", 1) > given.get("timeout_seconds", 0), (
        "an answer that is in time comes immediately"
    )
    requests: list[bytes] = []
    over = threading.Event()

    def script(connection: socket.socket, request: bytes) -> None:
        answer = answers[min(len(requests), len(answers) - 1)]
        requests.append(request)
        if "answer_after_seconds" in given:
            over.wait(HANG_SECONDS)
        connection.sendall(answer.replace(b"10.0.0.5:9090", f"{_HERE}:{other.port}".encode()))

    with contextlib.ExitStack() as stack:
        server, other = (stack.enter_context(contextlib.closing(Server(script))) for _ in range(2))
        if given.get("scheme") == "HTTPS":
            server.tls = _certificate()
        headers = tuple(HTTPHeader(name=name, value=value) for name, value in given.get("headers", ()))
        action = HTTPGetAction(port=server.port, scheme=given.get("scheme", "HTTP"), http_headers=headers)
        wanted = target(Probe(http_get=action), container_id="c", ip=_HERE)
        assert isinstance(wanted, HttpTarget)
        stack.callback(over.set)
        reading = _probed(wanted, case)
    hosts = [_fields(request)["Host"][0] for request in requests]
    found = _shown(reading) | {"requests": len(requests), "host_header_on_each_request": hosts}
    return differences(case["expect"], found)


def _answers(given: Case) -> Sequence[bytes]:
    if "chain_repeats" in given:
        return [_answer(given["chain_repeats"])]
    return [_answer(one) for one in given.get("chain", [given | {"status": given.get("status", 200)}])]


def _answer(one: Case) -> bytes:
    where = f"Location: {one['location']}\r\n".encode() if one.get("location") else b""
    status: int = one["status"]
    body: bytes = b"x" * one.get("body_bytes", 0)
    return _REASON % status + where + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _certificate() -> ssl.SSLContext:
    """Return a server context with a self-signed certificate."""
    with tempfile.TemporaryDirectory() as folder:
        key, cert = Path(folder, "key"), Path(folder, "cert")
        words = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=x")
        subprocess.run(["openssl", *words, "-keyout", key, "-out", cert], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        return context


def _fields(request: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]:
        name, _, value = line.partition(": ")
        found.setdefault(name, []).append(value)
    return found


def _http_request_headers(case: Case) -> Iterable[str]:
    sent = _fields(head(Request(host=_HERE, port=80, headers=tuple(map(tuple, case["given"]["http_headers"])))))
    version = {"kube-probe/<major>.<minor>": f"kube-probe/{texts.VERSION}"}
    for name, value in case["expect"].get("sent", {}).items():
        values = value if isinstance(value, list) else [version.get(value, value)]
        yield from differences({name: values}, sent)
    yield from (f"{name} was sent" for name in case["expect"].get("absent", ()) if name in sent)


# -- TCP, gRPC ---------------------------------------------------------------------------------------------------------


def _tcp_probe(case: Case) -> Iterable[str]:
    # Bind the port even if nothing is to listen on it, so that no other process can take it.
    with socket.socket() as listener:
        listener.bind((_HERE, 0))
        port = listener.getsockname()[1]
        if case["given"]["connects"]:
            listener.listen()
        with mock.patch.object(dial, "socket", _Sockets(fail_to_close=case["given"].get("close_error", False))):
            reading = _probed(TcpTarget(host=_HERE, port=port), case)
    return differences(case["expect"], _shown(reading))


class _ClosesWithAnError(socket.socket):
    """A socket whose `close` fails; as on Linux, it frees the descriptor before it reports the error."""

    def close(self) -> None:
        was_open = self.fileno() >= 0
        super().close()
        if was_open:
            raise OSError(errno.EIO, "the connection could not be closed")


class _Sockets:
    """Replaces the module `socket` in the product's `dial`. With `fail_to_close`, its sockets fail to close."""

    def __init__(self, *, fail_to_close: bool) -> None:
        self.socket = _ClosesWithAnError if fail_to_close else socket.socket

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)


def _grpc_probe(case: Case) -> Iterable[str]:
    given = case["given"]
    with contextlib.ExitStack() as stack:
        if given.get("dial") == "timeout":
            listener = stack.enter_context(socket.create_server((_HERE, 0)))  # accepts connections and never answers
            port = listener.getsockname()[1]
        else:
            port = stack.enter_context(_health_server(given))
        reading = _probed(GrpcTarget(host=_HERE, port=port), case)
    return differences(case["expect"], _shown(reading))


class _Failing(health_pb2_grpc.HealthServicer):  # type: ignore[misc] # generated without types
    """A health service that answers every call with this status code."""

    def __init__(self, code: str) -> None:
        self._code = grpc.StatusCode[code]

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the service's name
        del request
        context.abort(self._code, "the code of the case")


@contextlib.contextmanager
def _health_server(given: Case) -> Iterator[int]:
    with ThreadPoolExecutor(1) as workers:
        server = grpc.server(workers)
        if "rpc_error" in given:
            health_pb2_grpc.add_HealthServicer_to_server(_Failing(given["rpc_error"]), server)
        else:
            servicer = health.HealthServicer()
            servicer.set("", health_pb2.HealthCheckResponse.ServingStatus.Value(given["status"]))
            health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
        port = server.add_insecure_port(f"{_HERE}:0")
        server.start()
        yield port
        server.stop(0).wait()


# -- commands ----------------------------------------------------------------------------------------------------------


def _exec_probe(case: Case) -> Iterable[str]:
    given = case["given"]
    output = given.get("output", "x" * given.get("output_bytes", 0)).encode()
    code = given.get("exit_code", given.get("exit_error_code", 0))
    program = Program() if given.get("timeout") else Program(exits=code, stdout=output)
    runtime = FakeRuntime(programs={("probe",): program}, images=("image",))
    container = running(runtime)
    if given.get("other_error"):
        runtime.refuse("create_exec", Refusal("failed", "the runtime is broken"))
    reading = _probed(ExecTarget(container_id=container, command=("probe",)), case, runtime)
    return differences(case["expect"], _shown(reading))


# -- attempts ----------------------------------------------------------------------------------------------------------


def _handler_retries(case: Case) -> Iterable[str]:
    """Compare the number of attempts of a ProbeWorker, and the decision about the outcome that it sends, with and
    without overload protection.
    """
    given = case["given"]
    assert given["max_attempts"] == MOST_ATTEMPTS, "the product has one limit"
    found: list[str] = []
    for protects in (False, True):
        scripted = ScriptedProber(given["attempt_outcomes"], protects=protects)
        outcome = scripted.outcome()
        result = {"attempts": scripted.attempts, **_decided(outcome.outcome, outcome.output)}
        found += differences(case["expect"], result)
    return found


def _decided(outcome: str, output: str = "") -> dict[str, Any]:
    """Return the decision about an outcome of a readiness probe whose thresholds are 1."""
    numbers = {"initial_delay_seconds": 0, "period_seconds": 1, "success_threshold": 1, "failure_threshold": 1}
    ticks = Ticks({"probe_type": "readiness", "pod_restart_policy": "Always", **numbers})
    container = {"id": "c-1", "state": "running", "started": True, "started_at_seconds": 0}
    step = {"t_seconds": 1, "pod_phase": "Running", "container": container, "handler_result": outcome}
    published = ticks.tick(step | {"output": output})["published"]
    recorded = [event.reason for event in ticks.events if isinstance(event, kube_events.Recorded)]
    return {"result": published, "error": outcome == "error", "events": recorded}


KINDS = {
    "exec_probe": _exec_probe,
    "grpc_probe": _grpc_probe,
    "handler_retries": _handler_retries,
    "http_probe": _http_probe,
    "http_request_headers": _http_request_headers,
    "tcp_probe": _tcp_probe,
}
