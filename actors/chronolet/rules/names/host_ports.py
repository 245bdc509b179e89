"""The host ports that a pod needs, and their conflicts with ports held by other pods. Pure.

Input: a PodSpec; the ports that pods hold. Output: `HostPort`s, or the first conflict and its holder. Next:
`needs`, `qos` and `apply`. Source: pkg/scheduler/framework/types.go (HostPortInfo), pkg/scheduler/util/utils.go
(GetHostPorts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from chronolet_schemas.podspec import PodSpec
from chronolet_schemas.resources import HostPort

_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, not listened on


class Taken(NamedTuple):
    """A requested port, the held port that it conflicts with, and the pod (namespace/name) that holds it."""

    wanted: HostPort
    held: HostPort
    holder: str


def host_ports(spec: PodSpec) -> Iterator[HostPort]:
    """Yield the host ports of app containers and sidecars. Other init containers do not count: each ends before the
    next container starts.
    """
    sidecars = (one for one in spec.init_containers if one.restart_policy == "Always")
    for one in (*sidecars, *spec.containers):
        for port in one.ports:
            if port.host_port:
                yield HostPort(ip=port.host_ip or _EVERY_ADDRESS, protocol=port.protocol or "TCP", port=port.host_port)


def taken(wanted: Sequence[HostPort], others: Iterable[tuple[str, Sequence[HostPort]]]) -> Taken | None:
    """Return the first conflict between a requested port and a port that one of `others` (name, ports) holds; None if
    there is none.
    """
    return next(
        (
            Taken(one, held, holder)
            for holder, ports in others
            for one in wanted
            for held in ports
            if conflict(one, held)
        ),
        None,
    )


def conflict(one: HostPort, other: HostPort) -> bool:
    """Return whether two host ports conflict: they have the same port and protocol, and the same address, or one of
    them is for all addresses.
    """
    if (one.protocol, one.port) != (other.protocol, other.port):
        return False
    return one.ip == other.ip or _EVERY_ADDRESS in (one.ip, other.ip)
