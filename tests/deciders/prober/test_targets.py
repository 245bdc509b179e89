"""How a probe's definition is resolved to a target, and which outcomes are retried."""

from __future__ import annotations

import pytest

from chronolet.ports.pods.probes import ExecTarget, GrpcTarget, HttpTarget, TcpTarget
from chronolet.ports.pods.requests import Request
from chronolet.prober.outcomes import should_retry
from chronolet.prober.targets import target
from chronolet_schemas.podspec import ExecAction, GRPCAction, HTTPGetAction, HTTPHeader, Probe, TCPSocketAction


def target_of(**handler: object) -> object:
    return target(Probe(**handler), container_id="c", ip="10.1.2.3")  # type: ignore[arg-type]


def test_the_target_is_the_pods_address_unless_another_host_is_named() -> None:
    assert target_of(exec=ExecAction(command=("a", "b"))) == ExecTarget(container_id="c", command=("a", "b"))
    assert target_of(tcp_socket=TCPSocketAction(port=80)) == TcpTarget(host="10.1.2.3", port=80)
    assert target_of(tcp_socket=TCPSocketAction(port=80, host="h")) == TcpTarget(host="h", port=80)
    assert target_of(grpc=GRPCAction(port=80, service="s")) == GrpcTarget(host="10.1.2.3", port=80, service="s")
    assert target_of(http_get=HTTPGetAction(port=80)) == HttpTarget(request=Request(host="10.1.2.3", port=80))


def test_all_fields_of_an_http_get() -> None:
    headers = (HTTPHeader(name="A", value="1"), HTTPHeader(name="A", value="2"))
    action = HTTPGetAction(path="/p?q", port="8443", host="h", scheme="HTTPS", http_headers=headers)
    expected = Request(scheme="https", host="h", port=8443, path="/p?q", headers=(("A", "1"), ("A", "2")))
    assert target_of(http_get=action) == HttpTarget(request=expected)


@pytest.mark.parametrize(
    ("port", "problem"),
    [
        ("web", "couldn't find port: web"),
        ("", "couldn't find port"),
        (None, "invalid port number: None"),
        (0, "invalid port number: 0"),
        (-1, "invalid port number: -1"),
        (65536, "invalid port number: 65536"),
        ("65536", "invalid port number: 65536"),
    ],
)
def test_an_invalid_port_is_reported(port: int | str | None, problem: str) -> None:
    assert target_of(http_get=HTTPGetAction(port=port)) == problem
    assert target_of(tcp_socket=TCPSocketAction(port=port)) == problem
    if not isinstance(port, str):
        assert target_of(grpc=GRPCAction(port=port)) == problem


def test_a_missing_handler_is_reported() -> None:
    assert target_of() == "missing probe handler"


def test_only_an_error_is_retried_up_to_three_attempts() -> None:
    assert [should_retry("error", number) for number in (1, 2, 3)] == [True, True, False]
    assert not any(should_retry(result, 1) for result in ("success", "warning", "failure"))
