"""The KubeEvents that follow a pod's own events, with the kubelet's reasons and messages where the kubelet has such
events. Pure.

Input: the state before an event, and the event. Output: `kube_events.Recorded`, none for most events. Next: `decider`
emits them after the event. Source: pkg/kubelet/events/event.go, kuberuntime_container.go, kuberuntime_manager.go,
images/image_manager.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from chronolet.pod.admission import pull_secrets
from chronolet.pod.admission.waiting import REJECTED, WAITING, WAITING_FOR_PORTS
from chronolet.pod.planning import probing
from chronolet.pod.planning.backoff import FAILED_MOUNT
from chronolet.pod.state import SANDBOX, STATUS_UNKNOWN, Container, State, field_path
from chronolet.pod.wanted import NOT_BEGUN
from chronolet.rules.names.durations import go_duration
from chronolet_schemas import kube_events, pod
from chronolet_schemas.envelope import Event

_NO_FACTS: tuple[kube_events.Recorded, ...] = ()


def kube_events_for(state: State, event: Event) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvents for this event: those that the kubelet would record, and those about waits and failures
    that only chronolet has.
    """
    match event:
        case pod.SandboxEvent() | pod.SandboxBlocked() | pod.CleanupFailed():
            return _about_pod(state, event)
        case pod.PodFailed() | pod.DevicesAwaited() | pod.HostPortsAwaited():
            return (_about_failure_or_wait(state, event),)
        case pod.ImageEnsureRequested():
            return _about_secrets(state)
        case pod.ImageReady() | pod.ImageFailed() | pod.ImageBackOffBegan():
            return _about_image(state, event)
        case pod.ContainerEvent():
            return _about_container(state, event)
        case _:
            return _NO_FACTS


def pulling(state: State, container: str, image: str) -> kube_events.Recorded:
    """Return the KubeEvent for the beginning of a pull."""
    return _recorded(state, "Normal", "Pulling", f'Pulling image "{image}"', container)


def secrets_lost(state: State, names: Sequence[str]) -> kube_events.Recorded:
    """Return the KubeEvent for pull Secrets that are missing or cannot be read; the pull is attempted without them."""
    text = (
        f"Unable to retrieve some image pull secrets ({', '.join(names)}); "
        "attempting to pull the image may not succeed."
    )
    return _recorded(state, "Warning", "FailedToRetrieveImagePullSecret", text)


def _about_secrets(state: State) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for missing Secrets. They concern the whole pod: of containers that look up images
    concurrently, only the first reports them.
    """
    names = pull_secrets.missing(state)
    if not names or any(one.phase == "pulling" for one in state.containers):
        return _NO_FACTS
    return (secrets_lost(state, names),)


def not_kept(state: State, error: str) -> kube_events.Recorded:
    """Return the KubeEvent for a changed spec that cannot be written to the state folder. The kubelet has no such
    event, because it does not store specs.
    """
    return _recorded(state, "Warning", "FailedKeepSpec", f"the changed spec cannot be stored: {error}")


def _about_pod(state: State, event: pod.PodEvent) -> Sequence[kube_events.Recorded]:
    match event:
        case pod.SandboxStartRequested() if event.attempt > state.sandbox.attempt:
            text = "Pod sandbox changed, it will be killed and re-created."
            return (_recorded(state, "Normal", "SandboxChanged", text),)
        case pod.SandboxStartFailed() if event.message != NOT_BEGUN:
            text = f"Failed to create pod sandbox: {event.message}"
            return (_recorded(state, "Warning", "FailedCreatePodSandBox", text),)
        case pod.SandboxBlocked():
            return (_recorded(state, "Warning", "FailedCreatePodSandBox", f"Error: {event.message}"),)
        case pod.SandboxStopFailed() | pod.CleanupFailed():
            return (_recorded(state, "Warning", "FailedKillPod", f"error killing pod: {event.message}"),)
        case _:
            return _NO_FACTS


def unmatched(state: State, reason: str, message: str) -> kube_events.Recorded:
    """Return the KubeEvent for a pod that runs here although a kubelet would not have admitted it to this node."""
    return _recorded(state, "Warning", reason, message)


def _about_failure_or_wait(
    state: State, event: pod.PodFailed | pod.DevicesAwaited | pod.HostPortsAwaited
) -> kube_events.Recorded:
    if isinstance(event, pod.HostPortsAwaited):
        return _recorded(state, "Warning", WAITING_FOR_PORTS, event.message)
    if isinstance(event, pod.DevicesAwaited):
        return _recorded(state, "Warning", WAITING, event.message, event.container)
    if event.message.startswith(REJECTED):
        return _recorded(state, "Warning", event.reason, event.message.removeprefix(REJECTED))
    return _recorded(state, "Normal", event.reason, event.message)


def _about_image(
    state: State, event: pod.ImageReady | pod.ImageFailed | pod.ImageBackOffBegan
) -> Sequence[kube_events.Recorded]:
    name, image = event.container, event.image
    match event:
        case pod.ImageReady(pulled=False) if _waits_for_mount(state, name):
            return _NO_FACTS  # the kubelet does not look up images before it has the volumes
        case pod.ImageReady():
            return (_recorded(state, "Normal", "Pulled", _pulled(event), name),)
        case pod.ImageBackOffBegan():
            return _image_back_off(state, name, image)
        case pod.ImageFailed(reason="ErrImageNeverPull"):
            reason, text = event.reason, f'Container image "{image}" is not present with pull policy of Never'
        case pod.ImageFailed(reason="InvalidImageName"):
            reason, text = "InspectFailed", event.message
        case pod.ImageFailed(reason="RegistryUnavailable"):
            detail = event.message.partition("registry is unavailable: ")[2]
            reason, text = "Failed", f'Failed to pull image "{image}": {event.reason}: {detail}'
        case _:
            reason, text = "Failed", f'Failed to pull image "{image}": {event.message}'
    return (
        _recorded(state, "Warning", reason, text, name),
        _recorded(state, "Warning", "Failed", f"Error: {event.reason}", name),
    )


def _image_back_off(state: State, name: str, image: str) -> Sequence[kube_events.Recorded]:
    return (
        _recorded(state, "Normal", "BackOff", f'Back-off pulling image "{image}"', name),
        _recorded(state, "Warning", "Failed", "Error: ImagePullBackOff", name),
    )


def _about_wait(state: State, event: pod.RestartScheduled | pod.BackOffContinued) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvents for a restart or image back-off. The kubelet records them on every sync of the pod, so they
    are repeated.
    """
    one, name = state.container(event.container), event.container
    if isinstance(event, pod.RestartScheduled) and not event.back_off_seconds:
        return _NO_FACTS
    if one is not None and one.phase == "image_back_off":
        return _image_back_off(state, name, one.image)
    where = f"{state.manifest.metadata.name}_{state.manifest.metadata.namespace}({state.uid})"
    text = f"Back-off restarting failed container {name} in pod {where}"
    return (_recorded(state, "Warning", "BackOff", text, name),)


def _waits_for_mount(state: State, container: str) -> bool:
    one = state.container(container)
    return one is not None and one.reason == FAILED_MOUNT


def _pulled(event: pod.ImageReady) -> str:
    if not event.pulled:
        return f'Container image "{event.image}" already present on machine and can be accessed by the pod'
    took = go_duration(event.milliseconds)
    whole = go_duration(event.milliseconds + event.waited_milliseconds)
    return (
        f'Successfully pulled image "{event.image}" in {took} ({whole} including waiting). '
        f"Image size: {event.size_bytes} bytes."
    )


def _about_container(state: State, event: pod.ContainerEvent) -> Sequence[kube_events.Recorded]:
    name = event.container
    match event:
        case pod.ContainerBlocked():
            return (_recorded(state, "Warning", "Failed", f"Error: {event.message}", name),)
        case pod.ContainerStarted():
            return _container_started(state, event)
        case pod.ContainerStartFailed():
            return _start_failed(state, event)
        case pod.ContainerExited(reason=reason) if reason == STATUS_UNKNOWN and state.stray(event.id) is None:
            return (_recorded(state, "Warning", STATUS_UNKNOWN, _exit_unknown(event), name),)
        case pod.RestartScheduled() | pod.BackOffContinued():
            return _about_wait(state, event)
        case _:
            return _container_stop(state, event)


def _exit_unknown(event: pod.ContainerExited) -> str:
    """Return the KubeEvent's message for an unknown exit. The kubelet has no such event: it uses
    `ContainerStatusUnknown` and the words `could not be located` only in the pod's status.
    """
    return (
        f"Container {event.container} could not be located: its real exit status is unknown "
        f"and reported as exit code {event.exit_code}"
    )


def _start_failed(state: State, event: pod.ContainerStartFailed) -> Sequence[kube_events.Recorded]:
    if event.message == NOT_BEGUN:
        return _NO_FACTS
    if event.reason == FAILED_MOUNT:
        return _mount_failed(state, event)
    failed = _recorded(state, "Warning", "Failed", f"Error: {event.message}", event.container)
    return (_created(state, event.container), failed) if event.id else (failed,)


def _mount_failed(state: State, event: pod.ContainerStartFailed) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for unavailable volumes. They belong to the pod: of the containers that wait for them, only
    the first reports them.
    """
    first = next(
        (one.name for one in state.containers if event.container == one.name or one.reason == event.reason), ""
    )
    if first != event.container:
        return _NO_FACTS
    return (_recorded(state, "Warning", event.reason, event.message),)


def _container_stop(state: State, event: pod.ContainerEvent) -> Sequence[kube_events.Recorded]:
    match event:
        case pod.ContainerStopRequested():
            return _killing(state, event)
        case pod.HookEnded():
            return _hook_ended(state, event)
        case pod.ContainerStopFailed():
            return (_recorded(state, "Warning", "FailedKillPod", f"error killing pod: {event.message}"),)
        case _:
            return _NO_FACTS


def _hook_ended(state: State, event: pod.HookEnded) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for a hook that failed or has an unknown outcome. Omits its output, which may be secret."""
    if event.outcome == "Failed":
        return (_recorded(state, "Warning", f"Failed{event.hook}Hook", f"{event.hook}Hook failed", event.container),)
    if event.outcome == "Unknown":
        text = f"the outcome of the {event.hook} hook is unknown; it is not run again"
        return (_recorded(state, "Warning", f"Failed{event.hook}Hook", text, event.container),)
    return _NO_FACTS


def _container_started(state: State, event: pod.ContainerStarted) -> Sequence[kube_events.Recorded]:
    before = state.container(event.container)
    started = _recorded(state, "Normal", "Started", "Container started", event.container)
    # Only a start that was requested has also created the container.
    if before is not None and before.phase == "starting":
        return (_created(state, event.container), started)
    return (started,)


def _created(state: State, container: str) -> kube_events.Recorded:
    return _recorded(state, "Normal", "Created", "Container created", container)


def _killing(state: State, event: pod.ContainerStopRequested) -> Sequence[kube_events.Recorded]:
    one = state.container(event.container)
    if one is not None and one.id == event.id and one.phase == "stopping":
        return _NO_FACTS
    text = "FailedPostStartHook" if event.reason == "FailedPostStartHook" else f"Stopping container {event.container}"
    if event.reason in probing.FAILED:
        text = _failed_probe(state, event, one)
    if event.reason == "SpecChanged" and not (one is not None and one.kind == "left"):
        text = f"Container {event.container} definition changed, will be restarted"
    return (_recorded(state, "Normal", "Killing", text, event.container),)


def _failed_probe(state: State, event: pod.ContainerStopRequested, one: Container | None) -> str:
    probe = "liveness" if event.reason == "LivenessFailed" else "startup"
    if one is not None and one.kind == "sidecar":
        return f"Init container {event.container} failed {probe} probe"
    again = "" if state.manifest.spec.restart_policy == "Never" else ", will be restarted"
    return f"Container {event.container} failed {probe} probe{again}"


def _recorded(
    state: State, severity: Literal["Normal", "Warning"], reason: str, message: str, container: str = ""
) -> kube_events.Recorded:
    namespace, _, name = state.pod.partition("/")
    one = state.container(container)
    field = field_path(one.kind if one else "app", container) if container and container != SANDBOX else ""
    return kube_events.Recorded(
        object_kind="Pod",
        namespace=namespace,
        name=name,
        uid=state.uid,
        field_path=field,
        severity=severity,
        reason=reason,
        message=message,
    )
