"""Resolves a probe's definition to its target. Pure.

Input: a definition whose ports are numbers, the pod's address. Output: a `Target`, or a text that explains why there is
none. Next: `probe_worker`. Source: pkg/kubelet/prober/prober.go (runProbe), pkg/probe/util.go,
pkg/probe/http/request.go.
"""

from __future__ import annotations

from chronolet.ports.pods.probes import ExecTarget, GrpcTarget, HttpTarget, Target, TcpTarget
from chronolet.ports.pods.requests import Request
from chronolet_schemas.podspec import HTTPGetAction, Probe

_LARGEST_PORT = 65535


def target(definition: Probe, *, container_id: str, ip: str) -> Target | str:
    """Return the target, or a text that names what is wrong with the definition."""
    if definition.exec is not None:
        return ExecTarget(container_id=container_id, command=definition.exec.command)
    if definition.http_get is not None:
        return _http(definition.http_get, ip)
    if definition.tcp_socket is not None:
        port = resolved(definition.tcp_socket.port)
        return port if isinstance(port, str) else TcpTarget(host=definition.tcp_socket.host or ip, port=port)
    if definition.grpc is not None:
        port = resolved(definition.grpc.port)
        return port if isinstance(port, str) else GrpcTarget(host=ip, port=port, service=definition.grpc.service)
    return "missing probe handler"


def _http(action: HTTPGetAction, ip: str) -> Target | str:
    port = resolved(action.port)
    if isinstance(port, str):
        return port
    request = Request(
        scheme="https" if action.scheme == "HTTPS" else "http",
        host=action.host or ip,
        port=port,
        path=action.path,
        headers=tuple((header.name, header.value) for header in action.http_headers),
    )
    return HttpTarget(request=request)


def resolved(port: int | str | None) -> int | str:
    """Return a port's number, or what is wrong with it. A name that could not be resolved matches no port of the
    container.
    """
    if isinstance(port, str):
        if not port.isdecimal():
            return f"couldn't find port: {port}" if port else "couldn't find port"
        port = int(port)
    if port is None or not 0 < port <= _LARGEST_PORT:
        return f"invalid port number: {port}"
    return port
