"""Probes and lifecycle hooks: actions performed on a container from outside.

Source: Probe, Lifecycle in core/v1/types.go.
"""

from typing import Literal

from chronolet_schemas.podspec.base import Int32, Int64, IntOrString, Part


class ExecAction(Part, frozen=True, kw_only=True):
    """A command run in the container, without a shell."""

    command: tuple[str, ...] = ()


class HTTPHeader(Part, frozen=True, kw_only=True):
    """One header of an HTTP request; names may repeat."""

    name: str = ""
    value: str = ""


class HTTPGetAction(Part, frozen=True, kw_only=True):
    """An HTTP request. `port` is a number or the name of a container's port; `host` defaults to the pod's address."""

    path: str = "/"
    port: IntOrString | None = None
    host: str = ""
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"
    http_headers: tuple[HTTPHeader, ...] = ()


class TCPSocketAction(Part, frozen=True, kw_only=True):
    """A TCP connection; succeeds as soon as it is established."""

    port: IntOrString | None = None
    host: str = ""


class GRPCAction(Part, frozen=True, kw_only=True):
    """A call to the gRPC health service."""

    port: Int32 | None = None
    service: str = ""


class SleepAction(Part, frozen=True, kw_only=True):
    """A pause of the given number of seconds."""

    seconds: Int64 = 0


class Probe(Part, frozen=True, kw_only=True):
    """A probe's handler and thresholds. Zero means Kubernetes' default, which `defaulted` fills in."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 1
    period_seconds: Int32 = 10
    success_threshold: Int32 = 1
    failure_threshold: Int32 = 3
    termination_grace_period_seconds: Int64 | None = None


class LifecycleHandler(Part, frozen=True, kw_only=True):
    """The action of a hook."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Part, frozen=True, kw_only=True):
    """Hooks after the start and before the stop of a container, and the signal that stops it."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str = ""
