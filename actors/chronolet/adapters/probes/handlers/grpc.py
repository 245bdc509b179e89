"""gRPC health checks, `grpc.health.v1.Health/Check`.

Input: `GrpcTarget`. Output: a `Reading`, reported after the connection is closed. Next: the prober's worker.
Corresponds to pkg/probe/grpc/grpc.go. grpc is imported for the first probe that needs it, because it takes ten MiB. As
in the kubelet, each probe opens a new connection: with a shared one, it would take a moment to notice that a server has
gone or come back.
"""

from __future__ import annotations

import json
import time
from contextlib import closing

from chronolet.adapters.http import texts
from chronolet.adapters.probes.scheduling.lanes import AttemptHandle, Outcome, Work
from chronolet.ports.pods.probes import MAY_NOT, GrpcTarget, Result
from chronolet.rules.names.durations import go_duration

_OPTIONS = (
    ("grpc.primary_user_agent", f"kube-probe/{texts.VERSION}"),
    ("grpc.use_local_subchannel_pool", 1),  # otherwise a later channel inherits the back-off of a refused connection
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.max_receive_message_length", 64 * 1024),
)
_PAUSE_SECONDS = 0.1
_LEAST_SECONDS = 0.01
_NO_CONNECTION = ("failed to connect to all addresses", "DNS resolution failed")
"""The first words of gRPC's error messages for a server that could not be reached."""


def prepare() -> None:
    """Import what the first probe needs, before the probe's time-out starts."""
    import grpc_health.v1.health_pb2_grpc  # noqa: F401, PLC0415 - see above


def health_work(target: GrpcTarget, timeout_seconds: float) -> Work:
    """Return the work of a gRPC probe, for a lane."""

    def work(attempt: AttemptHandle) -> None:
        attempt.begun(_refused("DEADLINE_EXCEEDED", "", timeout_seconds))
        result, output, timed_out = _checked(target, timeout_seconds, attempt)
        attempt.report(Outcome(result, output, timed_out=timed_out))

    return work


def _checked(target: GrpcTarget, timeout_seconds: float, attempt: AttemptHandle) -> tuple[Result, str, bool]:
    """Call the health service; return the result, the output, and whether the probe timed out."""
    import grpc  # noqa: PLC0415 - see above
    from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: PLC0415

    until = time.monotonic() + timeout_seconds
    address = texts.address(target.host, target.port)
    with closing(grpc.insecure_channel(address, options=_OPTIONS)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=target.service)
        while attempt.may():
            call = stub.Check.future(request, timeout=max(until - time.monotonic(), _LEAST_SECONDS))
            attempt.if_cancelled(call.cancel)
            try:
                answer = call.result()
            except grpc.FutureCancelledError:
                return "error", "cancelled", False
            except grpc.RpcError as error:
                code, details = error.code().name, error.details() or ""
                if not _unconnected(code, details):
                    return "failure", _refused(code, details, timeout_seconds), code == "DEADLINE_EXCEEDED"
                left = until - time.monotonic() - _PAUSE_SECONDS
                if left <= 0 or attempt.cancelled.wait(_PAUSE_SECONDS):
                    late = "refused" not in details.lower()
                    return "failure", _not_connected(address, details, timeout_seconds), late
            else:
                status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return "success", "service healthy", False
                return "failure", f"service unhealthy (responded with {json.dumps(status)})", False
    return "error", MAY_NOT, False


def _unconnected(code: str, details: str) -> bool:
    """Whether no server could be reached. If a server itself reports UNAVAILABLE, it has been reached."""
    return code == "UNAVAILABLE" and details.startswith(_NO_CONNECTION)


def _not_connected(address: str, details: str, timeout_seconds: float) -> str:
    """Return the error text for a server that could not be reached before the time was up; until then the kubelet, too,
    keeps trying.
    """
    within = go_duration(round(timeout_seconds * 1000))
    return f"timeout: failed to connect service {json.dumps(address)} within {within}: {details}"


def _refused(code: str, details: str, timeout_seconds: float) -> str:
    """Return an error text in the kubelet's form, with Go's names for status codes."""
    within = go_duration(round(timeout_seconds * 1000))
    match code:
        case "UNIMPLEMENTED":
            protocol = "grpc health protocol (grpc.health.v1.Health)"
            return f"error: this server does not implement the {protocol}: {details}"
        case "DEADLINE_EXCEEDED":
            return f"timeout: health rpc did not complete within {within}"
        case _:
            name = "".join(word.capitalize() for word in code.split("_"))
            return f"error: health rpc probe failed: rpc error: code = {name} desc = {details}"
