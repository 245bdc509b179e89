"""Who is asked before a pod is started, and what the answers mean. Pure.

Comes in: State, now, answers of the kinds that take part. Goes out: the pod's requests, and the facts that follow from
answers. Next: `plan` asks here before it makes a sandbox or starts a container; `decider`.
Source: pkg/kubelet/kubelet.go (canAdmitPod, rejectPod), pkg/kubelet/cm/admission/errors.go.

The kinds are asked in their order; the next one when those before it have said yes. One that is not part of the node is
not asked. A request is repeated until it is answered, an answer that comes twice says nothing new, and "not yet" is an
answer: the pod waits, and says for what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from chronolet.pod.admission import device_claims, node_share
from chronolet.pod.planning.backoff import RESYNC_SECONDS
from chronolet.pod.state import Container, DeviceClaim, State
from chronolet.rules.device_options import merged
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event

NEEDS: Mapping[str, Callable[[State], bool]] = {
    device_claims.KIND: lambda state: bool(device_claims.needs(state)),
    node_share.KIND: lambda _: True,
}
"""The kinds that may take part, in the order in which they are asked, and whether a pod needs anything of each."""
_OPTIONAL = frozenset((node_share.KIND,))
"""Those that nobody misses where they do not take part."""

REJECTED = "Pod was rejected: "
"""How the message of a pod begins that was not let in."""
UNEXPECTED = "UnexpectedAdmissionError"
WAITING = "WaitingForDevices"
"""Why a container waits that is to have devices. The kubelet has no word for it: there such a pod is rejected."""

_NO_DEVICES_KIND = "no part of this node gives devices to containers: the kind `devices` does not take part"

AdmissionReply = (
    devices.DevicesAllocated
    | devices.DevicesPending
    | devices.DevicesRefused
    | devices.PreStartDone
    | devices.PreStartFailed
    | node_share.QosReply
)
"""What those that were asked say."""


def begun(state: State, takes_part: frozenset[str]) -> Sequence[Event]:
    """Which kinds the pod asks, where that is news: at its beginning, and when another one is needed or takes part."""
    if not state.uid or state.over:
        return ()
    needed = [kind for kind, needs in NEEDS.items() if needs(state) and kind not in _OPTIONAL - takes_part]
    kinds = tuple(kind for kind in needed if kind in takes_part)
    if kinds == state.admission or (state.admission is None and not needed):
        return ()
    return (pod.AdmissionBegan(pod=state.pod, uid=state.uid, kinds=kinds),)


def before_sandbox(state: State, attempt: int, now: int) -> Iterator[Event]:
    """What is to be asked before the sandbox of this attempt is made."""
    yield from device_claims.superfluous(state)
    asked = tuple(device_claims.requests(state, attempt, now))
    yield from asked
    if not asked and _has_devices(state, attempt):
        yield from node_share.requests(state, now)


def admitted(state: State, attempt: int) -> bool:
    """Whether all that were asked have said yes."""
    return _has_devices(state, attempt) and node_share.granted(state)


def _has_devices(state: State, attempt: int) -> bool:
    if not device_claims.served(state):
        return True
    return all(device_claims.granted(state, name, attempt) for name in device_claims.needs(state))


def while_it_runs(state: State, now: int) -> Iterator[Event]:
    """What is to be asked while the sandbox runs: a changed spec may want something else."""
    yield from device_claims.superfluous(state)
    yield from device_claims.requests(state, state.sandbox.attempt, now)
    yield from device_claims.pre_start_requests(state, now)
    yield from node_share.requests(state, now)


def may_start(state: State, one: Container) -> bool:
    """Whether a container has all that it needs to be started."""
    return device_claims.granted(state, one.name, state.sandbox.attempt) and node_share.granted(state)


def start_announced(state: State, one: Container) -> bool:
    """Whether whoever wants to know of this start has been told."""
    return device_claims.start_announced(state, one)


def released(state: State) -> Iterator[Event]:
    """Nothing of the pod runs any more, nor will: everything is given back."""
    yield from device_claims.all_released(state)
    yield from node_share.released(state)


def abandoned_starts(state: State, now: int) -> Iterator[Event]:
    """The pod is over: what waits for leave to start does not start."""
    for one in state.containers:
        if not start_announced(state, one):
            message = "the pod was over before its device plugins had been told of the start"
            yield _not_started(state, one, message, now)


def retry_times(state: State) -> Iterator[int]:
    """When something is asked again that was not answered, or put off."""
    yield from device_claims.retry_times(state)
    yield from node_share.retry_times(state)


def waiting_reason(state: State, one: Container) -> tuple[str, str]:
    """Why a container that cannot start yet waits, itself or with its pod, and for what; empty if it waits for nothing
    here.
    """
    if one.alive or state.over:
        return "", ""
    if state.share.phase == "awaited":
        return node_share.WAITING_FOR_PORTS, state.share.message
    devices_wait = _device_wait(state, one)
    return (WAITING, devices_wait) if devices_wait else ("", "")


def _device_wait(state: State, one: Container) -> str:
    if state.admission is not None and not device_claims.served(state) and one.name in device_claims.needs(state):
        return _NO_DEVICES_KIND
    own = state.wishes.get(one.name)
    if own is not None and own.phase == "awaited":
        return own.message
    if state.sandbox.phase == "running":
        return ""
    others = ((name, claim) for name, claim in state.wishes.items() if claim.phase == "awaited")
    return next((f"container {name} is {claim.message}" for name, claim in others), "")


# -- answers -------------------------------------------------------------------------------------------------------
def answered(state: State, message: AdmissionReply, now: int) -> Sequence[Event]:
    """What an answer means; nothing where nobody has asked, or not any more."""
    if isinstance(message, node_share.QosReply):
        expected = message.uid == state.uid and not state.over and state.share.phase != "none"
        return node_share.answered(state, message, REJECTED) if expected else ()
    claim = state.wishes.get(message.container)
    if message.uid != state.uid or claim is None or state.over:
        return ()
    match message:
        case devices.DevicesAllocated() | devices.DevicesPending() | devices.DevicesRefused():
            return _request_reply(state, claim, message, now) if claim.phase in ("asked", "awaited") else ()
        case _:
            return _pre_start_reply(state, claim, message, now)


def _request_reply(
    state: State,
    claim: DeviceClaim,
    message: devices.DevicesAllocated | devices.DevicesPending | devices.DevicesRefused,
    now: int,
) -> Sequence[Event]:
    match message:
        case devices.DevicesPending():
            if (claim.reason, claim.message) == (message.reason, message.message):
                return ()
            return (
                pod.DevicesAwaited(
                    pod=state.pod,
                    uid=state.uid,
                    container=message.container,
                    reason=message.reason,
                    message=message.message,
                    said_at=now,
                ),
            )
        case devices.DevicesAllocated():
            return (_granted(state, message),) if message.complete else ()
        case _:
            return _refused(state, message)


def _granted(state: State, message: devices.DevicesAllocated) -> Event:
    allocations = message.allocations()
    return pod.DevicesGranted(
        pod=state.pod,
        uid=state.uid,
        container=message.container,
        devices={name: one.devices for name, one in sorted(allocations.items())},
        answer=merged(one.answer for _, one in sorted(allocations.items())),
        pre_start=any(one.pre_start for one in allocations.values()),
    )


def _refused(state: State, message: devices.DevicesRefused) -> Sequence[Event]:
    """The pod is rejected. Where it runs already, only the container whose wish has changed is kept from starting."""
    said = f"Allocate failed due to {message.message}, which is unexpected"
    if state.sandbox.phase in ("running", "starting", "stopping"):
        one = state.container(message.container)
        attempt = one.attempt if one is not None else 0
        return (
            pod.ContainerBlocked(
                pod=state.pod,
                uid=state.uid,
                container=message.container,
                attempt=attempt,
                reason=UNEXPECTED,
                message=said,
            ),
        )
    return (pod.PodFailed(pod=state.pod, uid=state.uid, reason=UNEXPECTED, message=f"{REJECTED}{said}"),)


def _pre_start_reply(
    state: State, claim: DeviceClaim, message: devices.PreStartDone | devices.PreStartFailed, now: int
) -> Sequence[Event]:
    one = state.container(message.container)
    if one is None or start_announced(state, one) or claim.telling != (message.attempt, one.start_failures):
        return ()
    if isinstance(message, devices.PreStartDone):
        return (
            pod.PreStartAllowed(
                pod=state.pod,
                uid=state.uid,
                container=one.name,
                attempt=one.attempt,
                failures=one.start_failures,
            ),
        )
    return (_not_started(state, one, message.message, now),)


def _not_started(state: State, one: Container, message: str, now: int) -> Event:
    return pod.ContainerStartFailed(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        reason="CreateContainerConfigError",
        message=message,
        failures=one.start_failures + 1,
        failed_at=now,
        retry_at=now + RESYNC_SECONDS * 1000,
    )
