"""The host ports of a pod, and conflicts between the ports of two pods."""

from __future__ import annotations

import pytest

from chronolet.rules.names.host_ports import conflict, host_ports, taken
from chronolet_schemas.podspec import Container, ContainerPort, PodSpec
from chronolet_schemas.resources import HostPort


def test_ports_of_apps_and_sidecars_count() -> None:
    def one(name: str, *ports: int, **more: str) -> Container:
        listed = tuple(ContainerPort(container_port=port, host_port=port) for port in ports)
        return Container(name=name, image="i", ports=(*listed, ContainerPort(container_port=9)), **more)  # type: ignore[arg-type]

    spec = PodSpec(containers=(one("a", 80),), init_containers=(one("i", 81), one("s", 82, restart_policy="Always")))
    assert [str(port) for port in host_ports(spec)] == ["0.0.0.0:82/TCP", "0.0.0.0:80/TCP"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (HostPort(port=80), HostPort(port=80), False),
        (HostPort(port=80), HostPort(port=81), True),
        (HostPort(port=80), HostPort(port=80, protocol="UDP"), True),
        (HostPort(port=80, ip="192.0.2.1"), HostPort(port=80), False),
        (HostPort(port=80), HostPort(port=80, ip="192.0.2.1"), False),
        (HostPort(port=80, ip="192.0.2.1"), HostPort(port=80, ip="192.0.2.1"), False),
        (HostPort(port=80, ip="192.0.2.1"), HostPort(port=80, ip="192.0.2.2"), True),
    ],
)
def test_which_ports_conflict(one: HostPort, other: HostPort, *, both: bool) -> None:
    assert conflict(one, other) is not both


def test_the_first_conflict_names_the_port_and_its_holder() -> None:
    http, https = HostPort(port=80), HostPort(port=443)
    found = taken((http, https), [("a/x", ()), ("a/y", (https,)), ("a/z", (http,))])
    assert found is not None
    assert (found.wanted, found.held, found.holder) == (https, https, "a/y")
    assert taken((http,), [("a/y", (https,))]) is None
