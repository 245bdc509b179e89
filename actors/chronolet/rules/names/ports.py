"""Resolves the port of a probe or hook: a number, or the name of one of the container's ports. Pure.

Input: the port from the spec, the container's ports. Output: a number. Next: the prober and the hooks, which connect
to it. Source: pkg/probe/util.go (ResolveContainerPort).
"""

from __future__ import annotations

from collections.abc import Iterable

from chronolet_schemas.podspec import ContainerPort

LARGEST_PORT = 65_535


def port_number(port: int | str | None, ports: Iterable[ContainerPort]) -> int:
    """Return the port's number; 0 if `port` is neither a valid number nor the name of one of `ports`. Numeric text
    counts as a number.
    """
    if isinstance(port, str):
        named = next((one.container_port for one in ports if one.name == port), None)
        port = named if named is not None else int(port) if port.isdecimal() else 0
    return port if port is not None and 0 < port <= LARGEST_PORT else 0
