"""Validates a container's probes and hooks as the API server does. Pure.

Input: a defaulted container, its path. Output: problems. Next: `containers`. Source: validateProbe,
validateLivenessProbe, validateReadinessProbe, validateLifecycle in pkg/apis/core/validation/validation.go. In addition,
a port name that the container does not define is rejected here; the kubelet would notice it only at each probe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.rules.names import names
from chronolet.rules.names.ports import LARGEST_PORT
from chronolet.rules.validation.problems import Problem, at_least, name_problems, within
from chronolet_schemas.podspec import Container, ContainerPort, LifecycleHandler, Part, Probe

_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_ATTRIBUTES = {"httpGet": "http_get", "tcpSocket": "tcp_socket"}


def action_problems(path: str, container: Container) -> Iterator[Problem]:
    """Yield all problems with a container's probes and hooks."""
    for field, probe in (
        ("livenessProbe", container.liveness_probe),
        ("readinessProbe", container.readiness_probe),
        ("startupProbe", container.startup_probe),
    ):
        if probe is not None:
            yield from _probe(f"{path}.{field}", probe, container.ports)
    if container.lifecycle is not None:
        for field, hook in (
            ("postStart", container.lifecycle.post_start),
            ("preStop", container.lifecycle.pre_stop),
        ):
            if hook is not None:
                yield from _handler(f"{path}.lifecycle.{field}", hook, _OF_HOOKS)


def _probe(path: str, probe: Probe, ports: Sequence[ContainerPort]) -> Iterator[Problem]:
    yield from _handler(path, probe, _OF_PROBES)
    yield from _named_ports(path, probe, ports)
    for field, value, lowest in (
        ("initialDelaySeconds", probe.initial_delay_seconds, 0),
        ("timeoutSeconds", probe.timeout_seconds, 1),
        ("periodSeconds", probe.period_seconds, 1),
        ("successThreshold", probe.success_threshold, 1),
        ("failureThreshold", probe.failure_threshold, 1),
    ):
        yield from at_least(f"{path}.{field}", value, lowest)
    readiness = path.endswith("readinessProbe")
    if not readiness and probe.success_threshold > 1:
        yield Problem(f"{path}.successThreshold", f"{probe.success_threshold} is above 1")
    if probe.termination_grace_period_seconds is not None:
        if readiness:
            message = "may not be set: a failed readiness probe does not stop the container"
            yield Problem(f"{path}.terminationGracePeriodSeconds", message)
        yield from at_least(f"{path}.terminationGracePeriodSeconds", probe.termination_grace_period_seconds, 1)


def _named_ports(path: str, probe: Probe, ports: Sequence[ContainerPort]) -> Iterator[Problem]:
    known = [port.name for port in ports if port.name]
    for field, action in (("httpGet", probe.http_get), ("tcpSocket", probe.tcp_socket)):
        name = action.port if action is not None else None
        if isinstance(name, str) and name not in known and names.port_problem(name) is None:
            listed = ", ".join(known) or "it has no named ports"
            yield Problem(f"{path}.{field}.port", f"{name!r} is not among the container's ports ({listed})")


def _handler(path: str, action: Probe | LifecycleHandler, handlers: Sequence[str]) -> Iterator[Problem]:
    """Validate that there is exactly one handler, with a command or port if it needs one."""
    given = [name for name in handlers if isinstance(getattr(action, _ATTRIBUTES.get(name, name)), Part)]
    if len(given) != 1:
        found = ", ".join(given) or "no handler"
        yield Problem(path, f"found {found}, expected one of {', '.join(handlers)}")
    if action.exec is not None and not action.exec.command:
        yield Problem(f"{path}.exec.command", "missing, expected a command")
    if action.http_get is not None:
        yield from _port(f"{path}.httpGet.port", action.http_get.port)
    if action.tcp_socket is not None:
        yield from _port(f"{path}.tcpSocket.port", action.tcp_socket.port)
    if isinstance(action, Probe) and action.grpc is not None:
        yield from _port(f"{path}.grpc.port", action.grpc.port)


def _port(path: str, port: int | str | None) -> Iterator[Problem]:
    if port is None or port == "":
        yield Problem(path, f"missing, expected 1 to {LARGEST_PORT} or the name of a port")
    elif isinstance(port, str):
        yield from name_problems(path, port, names.port_problem)
    else:
        yield from within(path, port, 1, LARGEST_PORT)
