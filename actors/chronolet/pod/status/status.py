"""Computes a pod's v1 PodStatus from its state. Pure.

Input: State. Output: `api.PodStatus`. Next: the CLI and the HTTP pages show it. Source: pkg/kubelet/kubelet_pods.go
(convertToAPIContainerStatuses, generateAPIPodStatus), pkg/kubelet/status/generate.go,
pkg/kubelet/prober/prober_manager.go (UpdatePodStatus). A container counts as running for `started` and `ready` once its
postStart hook has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from chronolet.pod.admission.waiting import REJECTED, waiting_reason
from chronolet.pod.planning import probing
from chronolet.pod.planning.backoff import FAILED_MOUNT
from chronolet.pod.state import Container, ContainerKind, Exit, Failure, State, definitions
from chronolet.pod.status import conditions
from chronolet.pod.status.addresses import pod_ips
from chronolet.pod.status.api import (
    ContainerState,
    ContainerStatus,
    PodCondition,
    PodIP,
    PodStatus,
    Running,
    Terminated,
    Waiting,
)
from chronolet.pod.status.phase import Phase, Status, pod_phase
from chronolet.ports.machine import moments
from chronolet.rules.resources.qos_class import qos_class
from chronolet.rules.stated_conditions import stated

_TERMINATION_MESSAGES_BYTES = 12 * 1024


def pod_status(state: State) -> PodStatus:
    """Return the status of a pod; for the empty state: Pending, without containers."""
    init, apps, ephemeral = (
        tuple(_container_status(state, one) for one in group)
        for group in (state.of_kind("init", "sidecar"), state.of_kind("app"), state.of_kind("ephemeral"))
    )
    phase = _phase(state, init, apps)
    addresses = _addresses(state)
    failure = state.failure or Failure(reason="", message="")
    if failure.message.startswith(REJECTED) and state.sandbox.phase == "absent":
        return _rejected(state, failure)
    host = state.sandbox.host_ip
    return PodStatus(
        phase=phase,
        host_ip=host,
        host_ips=(PodIP(ip=host),) if host else (),
        reason=failure.reason,
        message=failure.message,
        start_time=rfc3339(state.accepted_at),
        pod_ip=addresses[0] if addresses else "",
        pod_ips=tuple(PodIP(ip=address) for address in addresses),
        conditions=_conditions(state, init, apps, phase),
        init_container_statuses=init,
        container_statuses=apps,
        ephemeral_container_statuses=ephemeral,
        qos_class=qos_class(state.manifest.spec),
    )


def _rejected(state: State, failure: Failure) -> PodStatus:
    """Return the status of a rejected pod, which has no container statuses.

    Source: pkg/kubelet/kubelet.go (rejectPod).
    """
    return PodStatus(
        phase="Failed",
        reason=failure.reason,
        message=failure.message,
        start_time=rfc3339(state.accepted_at),
        qos_class=qos_class(state.manifest.spec),
    )


def _addresses(state: State) -> Sequence[str]:
    known = (state.sandbox.ip,) if state.sandbox.ip else ()
    ready = state.sandbox.phase in ("running", "stopping")
    return pod_ips(known, known if ready else (), sandbox_ready=ready)


def plain_status(state: State) -> dict[str, Any]:
    """Return the status as plain data with the API's names, for JSON and YAML."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(pod_status(state)))
    return plain


def rfc3339(milliseconds: int) -> str:
    """Format a time in milliseconds as RFC 3339; empty for 0."""
    return moments.rfc3339(milliseconds) if milliseconds else ""


def _phase(state: State, init: tuple[ContainerStatus, ...], apps: tuple[ContainerStatus, ...]) -> Phase:
    if state.failure is not None:
        return "Failed"
    ended = state.termination is not None and not any(one.alive for one in state.containers)
    known = {one.name: one for one in (*init, *apps)}
    sidecars = _names(state, "sidecar")
    return pod_phase(
        state.manifest.spec.restart_policy,
        [_for_phase(known.get(name), sidecar=name in sidecars) for name in _names(state, "init", "sidecar")],
        [_for_phase(known.get(name)) for name in _names(state, "app")],
        pod_is_terminal=ended,
    )


def _names(state: State, *kinds: ContainerKind) -> Sequence[str]:
    """Return the names of the spec's containers of these kinds, whether or not they have a status."""
    return [one.name for kind, one in definitions(state.manifest) if kind in kinds]


def _for_phase(status: ContainerStatus | None, *, sidecar: bool = False) -> Status:
    if status is None:
        return Status(state="missing", restartable=sidecar)
    last = status.last_state.terminated
    if status.state.terminated:
        return Status(state="terminated", exit_code=status.state.terminated.exit_code, restartable=sidecar)
    if status.state.running:
        return Status(state="running", started=bool(status.started), restartable=sidecar)
    return Status(state="waiting", last_exit_code=last.exit_code if last else None, restartable=sidecar)


def _conditions(
    state: State, init: tuple[ContainerStatus, ...], apps: tuple[ContainerStatus, ...], phase: Phase
) -> tuple[PodCondition, ...]:
    sidecars = _names(state, "sidecar")
    # Without a spec, nothing is known, not even that the pod has no containers.
    flags = {one.name: bool(one.ready) for one in (*init, *apps)} if state.uid else None
    done = {one.name: bool(one.started if one.name in sidecars else one.ready) for one in init} if state.uid else None
    ready = conditions.containers_ready(_names(state, "app"), flags, phase, sidecars)
    gates = [one.condition_type for one in state.manifest.spec.readiness_gates]
    known = stated(state.manifest)
    sandbox = conditions.Condition(status=state.sandbox.phase == "running")
    initialised = conditions.initialised(done, _names(state, "init", "sidecar"), phase, app_ran=_app_ran(state))
    return (
        _condition("PodReadyToStartContainers", sandbox),
        _condition("Initialized", initialised),
        _condition("Ready", conditions.pod_ready(ready, gates, known)),
        _condition("ContainersReady", ready),
        _condition("PodScheduled", conditions.Condition(status=bool(state.uid))),
        *(PodCondition(type=gate, status=known[gate]) for gate in gates if gate in known),
    )


def _app_ran(state: State) -> bool:
    """Whether an app container is running, or has run, in the current sandbox."""
    here = state.sandbox.id
    return any(
        one.phase in ("running", "stopping") or (one.exit is not None and here and one.exit.sandbox_id == here)
        for one in state.of_kind("app")
    )


def _condition(name: str, one: conditions.Condition) -> PodCondition:
    return PodCondition(type=name, status=str(one.status), reason=one.reason, message=one.message)


def _container_status(state: State, one: Container) -> ContainerStatus:
    runs = one.phase in ("running", "stopping")
    flags = probing.flags(probing.wanted(state, one), probing.results(one), runs=runs and not one.in_post_start)
    now = _state(state, one)
    last = (
        ContainerState(terminated=_terminated(state, one.exit)) if one.exit and not now.terminated else ContainerState()
    )
    container_id = one.id if runs or one.exit is None else one.exit.id
    completed = one.kind == "init" and now.terminated is not None and now.terminated.exit_code == 0
    return ContainerStatus(
        name=one.name,
        image=one.image or state.definition(one.name).image,
        image_id=_image_id(one),
        container_id=f"docker://{container_id}" if container_id else "",
        ready=completed if one.kind == "init" else flags.ready and one.kind != "ephemeral",
        started=flags.started if one.kind != "ephemeral" else None,
        restart_count=one.restarts,
        state=now,
        last_state=last,
    )


def _image_id(one: Container) -> str:
    """Return the imageID in the form used by kubelets on Docker: the name in the registry, else the engine's own id."""
    if one.image_digest:
        return f"docker-pullable://{one.image_digest}"
    return f"docker://{one.image_id}" if one.image_id else ""


def _state(state: State, one: Container) -> ContainerState:
    if one.phase in ("running", "stopping"):
        return ContainerState(running=Running(started_at=rfc3339(one.started_at)))
    if state.failure is not None and one.exit is not None and one.phase != "starting":
        return ContainerState(terminated=_terminated(state, one.exit))  # it will not restart
    reason, message = _waits_for(state, one)
    if reason:
        return ContainerState(waiting=Waiting(reason=reason, message=message))
    if one.exit is not None and not _runs_again(state, one):
        return ContainerState(terminated=_terminated(state, one.exit))
    usual = "PodInitializing" if state.of_kind("init", "sidecar") else "ContainerCreating"
    return ContainerState(waiting=Waiting(reason=usual, message=state.sandbox.message))


def _waits_for(state: State, one: Container) -> tuple[str, str]:
    """Return the reason and message of a container's wait; both are empty if no specific reason is known."""
    blocked = one.blocked or state.sandbox.blocked
    if blocked:
        return "CreateContainerConfigError", blocked
    reason, message = waiting_reason(state, one)
    if reason:
        return reason, message
    if one.phase == "exited" or one.reason == FAILED_MOUNT:
        return "", ""
    return one.reason, _waiting_message(state, one)


def _runs_again(state: State, one: Container) -> bool:
    """Whether the container will run again, whatever its exit code: its pod has a new sandbox, or waits for its volumes
    (the pod's KubeEvents say why).
    """
    sandbox, ran_in = state.sandbox, one.exit.sandbox_id if one.exit else ""
    in_new_sandbox = one.kind == "init" and sandbox.phase == "running" and ran_in != sandbox.id
    return in_new_sandbox or (one.reason == FAILED_MOUNT and one.phase != "exited")


def _waiting_message(state: State, one: Container) -> str:
    if one.reason != "CrashLoopBackOff":
        return one.message
    metadata = state.manifest.metadata
    where = f"{metadata.name}_{metadata.namespace}({state.uid})"
    return f"back-off {_duration(one.waited_seconds)} restarting failed container={one.name} pod={where}"


def _duration(seconds: int) -> str:
    """Format a duration as Go does: 40s, 1m20s."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _terminated(state: State, one: Exit) -> Terminated:
    """Return how a run ended. The containers of a pod share the limit on termination messages (pkg/kubelet/status:
    normalizeStatus).
    """
    room = _TERMINATION_MESSAGES_BYTES // sum(1 for _ in definitions(state.manifest))
    return Terminated(
        exit_code=one.exit_code,
        reason=one.reason,
        message=one.message.encode()[:room].decode(errors="ignore"),
        started_at=rfc3339(one.started_at),
        finished_at=rfc3339(one.finished_at),
        container_id=f"docker://{one.id}" if one.id else "",
    )
