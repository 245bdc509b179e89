"""Admission of a pod by other kinds: requests to them before the pod starts, and the events that follow from their
replies. Pure.

Input: State, now, replies of the participating kinds. Output: these requests and events. Next: `plan`, which checks
admission before it starts a sandbox or a container; `decider`. Source: pkg/kubelet/kubelet.go (canAdmitPod, rejectPod),
pkg/kubelet/cm/admission/errors.go.

The kinds receive their requests in order, each one after the previous ones have granted their part. A kind that the
node does not host is skipped. A request is repeated until there is a reply, and a repeated reply is ignored. A reply
may also defer the request: the pod then waits, and its status shows what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from chronolet.pod.admission import device_claims, node_share
from chronolet.pod.admission.waiting import REJECTED
from chronolet.pod.planning.backoff import RESYNC_SECONDS
from chronolet.pod.state import Container, DeviceClaim, State
from chronolet.rules.device_options import merged
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event

NEEDS: Mapping[str, Callable[[State], bool]] = {
    device_claims.KIND: lambda state: bool(device_claims.needs(state)),
    node_share.KIND: lambda _: True,
}
"""The kinds that may take part, in request order, each with a predicate that tells whether the pod needs it."""
_OPTIONAL = frozenset((node_share.KIND,))
"""Optional kinds: a pod starts without them on a node that does not host them."""

UNEXPECTED = "UnexpectedAdmissionError"

AdmissionReply = (
    devices.DevicesAllocated
    | devices.DevicesPending
    | devices.DevicesRefused
    | devices.PreStartDone
    | devices.PreStartFailed
    | node_share.QosReply
)
"""A reply from a participating kind."""


def begun(state: State, participants: frozenset[str]) -> Sequence[Event]:
    """Return AdmissionBegan with the kinds that take part in the pod's admission if that set has changed: at the
    beginning, and when a kind becomes needed or hosted, or no longer is. Otherwise return nothing.
    """
    if not state.uid or state.over:
        return ()
    needed = [kind for kind, needs in NEEDS.items() if needs(state) and kind not in _OPTIONAL - participants]
    kinds = tuple(kind for kind in needed if kind in participants)
    if kinds == state.admission or (state.admission is None and not needed):
        return ()
    return (pod.AdmissionBegan(pod=state.pod, uid=state.uid, kinds=kinds),)


def before_sandbox(state: State, attempt: int, now: int) -> Iterator[Event]:
    """Yield the requests and releases that are due before the sandbox with attempt number `attempt` starts."""
    yield from device_claims.superfluous(state)
    requests = tuple(device_claims.requests(state, attempt, now))
    yield from requests
    if not requests and _has_devices(state, attempt):
        yield from node_share.requests(state, now)


def admitted(state: State, attempt: int) -> bool:
    """Whether every participating kind has granted its part."""
    return _has_devices(state, attempt) and node_share.granted(state)


def _has_devices(state: State, attempt: int) -> bool:
    if not device_claims.served(state):
        return True
    return all(device_claims.granted(state, name, attempt) for name in device_claims.needs(state))


def while_it_runs(state: State, now: int) -> Iterator[Event]:
    """Yield the requests and releases that are due while the sandbox is running: a changed spec may have other needs,
    and a start may need a PreStart call.
    """
    yield from device_claims.superfluous(state)
    yield from device_claims.requests(state, state.sandbox.attempt, now)
    yield from device_claims.pre_start_requests(state, now)
    yield from node_share.requests(state, now)


def may_start(state: State, one: Container) -> bool:
    """Whether a container has been granted everything that it needs to start."""
    return device_claims.granted(state, one.name, state.sandbox.attempt) and node_share.granted(state)


def start_allowed(state: State, one: Container) -> bool:
    """Whether every plugin with a PreStart hook has allowed this start, i.e. the container may start; also true if no
    start is in progress.
    """
    return device_claims.start_allowed(state, one)


def released(state: State) -> Iterator[Event]:
    """Release the device claims of a pod that will not run again, and its share of the node once it has no running
    sandbox.
    """
    yield from device_claims.all_released(state)
    yield from node_share.released(state)


def abandoned_starts(state: State, now: int) -> Iterator[Event]:
    """Cancel those starts of an ending or failed pod that still wait for device plugins."""
    for one in state.containers:
        if not start_allowed(state, one):
            message = "the pod ended before its device plugins allowed the start"
            yield _not_started(state, one, message, now)


def retry_times(state: State) -> Iterator[int]:
    """Yield the times at which to repeat requests that got no reply, and requests for devices that were deferred."""
    yield from device_claims.retry_times(state)
    yield from node_share.retry_times(state)


# -- replies -------------------------------------------------------------------------------------------------------
def answered(state: State, message: AdmissionReply, now: int) -> Sequence[Event]:
    """Return the events that follow from a reply; none if no request is outstanding or the reply changes nothing."""
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
    """Reject the pod. If it is already running, block only the container whose claim has changed."""
    failure = f"Allocate failed due to {message.message}, which is unexpected"
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
                message=failure,
            ),
        )
    return (pod.PodFailed(pod=state.pod, uid=state.uid, reason=UNEXPECTED, message=f"{REJECTED}{failure}"),)


def _pre_start_reply(
    state: State, claim: DeviceClaim, message: devices.PreStartDone | devices.PreStartFailed, now: int
) -> Sequence[Event]:
    one = state.container(message.container)
    if one is None or start_allowed(state, one) or claim.telling != (message.attempt, one.start_failures):
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
