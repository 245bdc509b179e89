"""A pod's v1 PodStatus, computed from its state. Pure.

Comes in: State. Goes out: `PodStatus`, whose fields have the API's names. Next: the CLI and the HTTP pages show it.
Source: pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses, generateAPIPodStatus),
pkg/kubelet/status/generate.go. There are no probes yet: a container is started and ready while it runs.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from chronolet.pod import conditions
from chronolet.pod.backoff import FAILED_MOUNT
from chronolet.pod.phase import Phase, Status, pod_phase
from chronolet.pod.state import Container, Exit, State


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One object of the API; empty fields are left out."""


class Waiting(Part, frozen=True, kw_only=True):
    """Why it does not run."""

    reason: str
    message: str = ""


class Running(Part, frozen=True, kw_only=True):
    """Since when it runs."""

    started_at: str = ""


class Terminated(Part, frozen=True, kw_only=True):
    """How it ended."""

    exit_code: int = msgspec.field(default=-1)
    reason: str = ""
    message: str = ""
    started_at: str = ""
    finished_at: str = ""
    container_id: str = msgspec.field(default="", name="containerID")


class ContainerState(Part, frozen=True, kw_only=True):
    """One of the three, or none of them."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True, kw_only=True):
    """One container. `ready` and `restart_count` are always written."""

    name: str
    image: str
    ready: bool | None = None
    restart_count: int | None = None
    started: bool | None = None
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")


class PodCondition(Part, frozen=True, kw_only=True):
    """One condition; `status` is True or False as text."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodIP(Part, frozen=True, kw_only=True):
    """One address."""

    ip: str


class PodStatus(Part, frozen=True, kw_only=True):
    """The pod as a whole."""

    phase: Phase
    reason: str = ""
    message: str = ""
    start_time: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = msgspec.field(default=(), name="podIPs")
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


def pod_status(state: State) -> PodStatus:
    """The status of a pod; of the empty state: Pending, with nothing else."""
    statuses = tuple(_container_status(state, one) for one in state.containers)
    phase = _phase(state, statuses)
    address = state.sandbox.ip if state.sandbox.phase in ("running", "stopping") else ""
    return PodStatus(
        phase=phase,
        start_time=rfc3339(state.accepted_at),
        pod_ip=address,
        pod_ips=(PodIP(ip=address),) if address else (),
        conditions=_conditions(state, statuses, phase),
        container_statuses=statuses,
    )


def plain_status(state: State) -> dict[str, Any]:
    """The status as plain data with the API's names, as JSON and YAML show it."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(pod_status(state)))
    return plain


def rfc3339(milliseconds: int) -> str:
    """A time as the API writes it, empty for 0."""
    if not milliseconds:
        return ""
    return datetime.fromtimestamp(milliseconds // 1000, UTC).isoformat().replace("+00:00", "Z")


def _phase(state: State, statuses: tuple[ContainerStatus, ...]) -> Phase:
    ended = state.termination is not None and not any(one.alive for one in state.containers)
    return pod_phase(
        state.manifest.spec.restart_policy,
        (),
        tuple(_for_phase(one) for one in statuses),
        pod_is_terminal=ended,
    )


def _for_phase(status: ContainerStatus) -> Status:
    last = status.last_state.terminated
    if status.state.terminated:
        return Status(state="terminated", exit_code=status.state.terminated.exit_code)
    if status.state.running:
        return Status(state="running", started=True)
    return Status(state="waiting", last_exit_code=last.exit_code if last else None)


def _conditions(state: State, statuses: tuple[ContainerStatus, ...], phase: Phase) -> tuple[PodCondition, ...]:
    ready = conditions.containers_ready(
        [one.name for one in state.containers], {one.name: bool(one.ready) for one in statuses}, phase
    )
    sandbox = conditions.Condition(status=state.sandbox.phase == "running")
    return (
        _condition("PodReadyToStartContainers", sandbox),
        _condition("Initialized", conditions.initialised({}, (), phase)),
        _condition("Ready", conditions.pod_ready(ready)),
        _condition("ContainersReady", ready),
        _condition("PodScheduled", conditions.Condition(status=bool(state.uid))),
    )


def _condition(name: str, one: conditions.Condition) -> PodCondition:
    return PodCondition(type=name, status=str(one.status), reason=one.reason, message=one.message)


def _container_status(state: State, one: Container) -> ContainerStatus:
    runs = one.phase in ("running", "stopping")
    definition = next((each for each in state.manifest.spec.containers if each.name == one.name), None)
    now = _state(state, one)
    last = ContainerState(terminated=_terminated(one.exit)) if one.exit and not now.terminated else ContainerState()
    container_id = one.id if runs or one.exit is None else one.exit.id
    return ContainerStatus(
        name=one.name,
        image=one.image or (definition.image if definition else ""),
        image_id=_image_id(one),
        container_id=f"docker://{container_id}" if container_id else "",
        ready=runs,
        started=runs,
        restart_count=one.restarts,
        state=now,
        last_state=last,
    )


def _image_id(one: Container) -> str:
    """As the kubelet had it on Docker: by what name its registry knows it, else by the engine's own id."""
    if one.image_digest:
        return f"docker-pullable://{one.image_digest}"
    return f"docker://{one.image_id}" if one.image_id else ""


def _state(state: State, one: Container) -> ContainerState:
    if one.phase in ("running", "stopping"):
        return ContainerState(running=Running(started_at=rfc3339(one.started_at)))
    blocked = one.blocked or state.sandbox.blocked
    if blocked:
        return ContainerState(waiting=Waiting(reason="CreateContainerConfigError", message=blocked))
    if one.reason == FAILED_MOUNT and one.phase != "exited":
        return ContainerState(waiting=Waiting(reason="ContainerCreating"))  # why is told by the pod's events
    if one.reason and one.phase != "exited":
        return ContainerState(waiting=Waiting(reason=one.reason, message=_waiting_message(state, one)))
    if one.exit is not None:
        return ContainerState(terminated=_terminated(one.exit))
    return ContainerState(waiting=Waiting(reason="ContainerCreating", message=state.sandbox.message))


def _waiting_message(state: State, one: Container) -> str:
    if one.reason != "CrashLoopBackOff":
        return one.message
    metadata = state.manifest.metadata
    where = f"{metadata.name}_{metadata.namespace}({state.uid})"
    return f"back-off {_duration(one.waited_seconds)} restarting failed container={one.name} pod={where}"


def _duration(seconds: int) -> str:
    """As Go prints it: 40s, 1m20s."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _terminated(one: Exit) -> Terminated:
    return Terminated(
        exit_code=one.exit_code,
        reason=one.reason,
        message=one.message,
        started_at=rfc3339(one.started_at),
        finished_at=rfc3339(one.finished_at),
        container_id=f"docker://{one.id}" if one.id else "",
    )
