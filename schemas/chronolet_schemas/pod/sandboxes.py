"""A pod's sandbox. Source: pkg/kubelet/kuberuntime/kuberuntime_sandbox.go."""

from chronolet_schemas.pod.base import PodEvent, SandboxEvent
from chronolet_schemas.registry import registered


@registered
class SandboxBlocked(PodEvent, frozen=True, kw_only=True):
    """The pod must not get a sandbox as specified: `message` names the field that is not honoured."""

    message: str


@registered
class SandboxStartRequested(SandboxEvent, frozen=True, kw_only=True):
    """Intent: create and start the sandbox. `spec_hash` is the hash of its definition; `requested_at` has the same
    meaning as in ContainerStartRequested.
    """

    spec_hash: str
    requested_at: int


@registered
class SandboxCreated(SandboxEvent, frozen=True, kw_only=True):
    """The runtime has created the sandbox `id` and is about to start it; containers may already be created for it."""

    id: str


@registered
class SandboxStarted(SandboxEvent, frozen=True, kw_only=True):
    """The sandbox is running. `ip` is empty if the runtime assigns none; `host_ip` is the node's own address.

    `started_at` is taken from the runtime's clock.
    """

    id: str
    ip: str = ""
    host_ip: str = ""
    started_at: int


@registered
class SandboxStartFailed(SandboxEvent, frozen=True, kw_only=True):
    """The sandbox could not be started; the start is retried at `retry_at`."""

    message: str
    retry_at: int


@registered
class SandboxExited(SandboxEvent, frozen=True, kw_only=True):
    """The sandbox is dead (stopped by the agent, or killed). No new one starts before `next_at`."""

    id: str
    exit_code: int
    finished_at: int
    next_at: int = 0


@registered
class SandboxStopRequested(SandboxEvent, frozen=True, kw_only=True):
    """Intent: stop the sandbox. `finished`: whether it is stopped because the pod has finished. A finished pod stays
    and can still be inspected.
    """

    id: str
    finished: bool = False


@registered
class SandboxStopFailed(SandboxEvent, frozen=True, kw_only=True):
    """The runtime refused to stop the sandbox; the stop is retried at `retry_at`."""

    id: str
    message: str
    retry_at: int
