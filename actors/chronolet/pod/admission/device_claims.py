"""Device claims of a pod's containers: when they are requested, granted and released. Pure.

Input: State, now. Output: `pod.DevicesRequested`, `pod.DevicesAwaited`, `pod.DevicesReleased`, `pod.PreStartRequested`.
Next: `admission`. Source: pkg/kubelet/cm/devicemanager/manager.go (Allocate, GetDeviceRunContainerOptions).

    none    -> found      the container held devices before the log began
    none    -> asked
    found   -> asked
    asked   -> granted
    asked   -> awaited    the reply defers the claim, or there was no reply
    awaited -> granted
    granted -> asked      before another sandbox
    any     -> none       the container no longer needs these devices, or the pod will not run again
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chronolet.pod.state import Container, ContainerKind, DeviceClaim, State, definitions
from chronolet.rules.resources import extended_resources
from chronolet_schemas import pod
from chronolet_schemas.devices import Role
from chronolet_schemas.envelope import Event

KIND = "devices"
ASK_AGAIN_MS, ASK_AGAIN_AWAITED_MS = 60_000, 300_000
"""The time after which a request is repeated: without a reply, and after a reply that defers the claim."""

_UNANSWERED = "waiting for a reply from the kind `devices`: does a process of this node host it?"

_ROLES: dict[ContainerKind, Role] = {"init": "init", "sidecar": "sidecar", "app": "app"}


class Need(NamedTuple):
    """The devices that a container's spec requests: the number of devices for each resource."""

    role: Role
    wants: dict[str, int]


def needs(state: State) -> dict[str, Need]:
    """Return the devices that each container needs, by its name, in start order; blocked containers are omitted."""
    found = {}
    for kind, definition in definitions(state.manifest):
        role = _ROLES.get(kind)
        if role is None or not any("/" in name for name in definition.resources.limits):
            continue  # the cheap test first: this runs for every pod at every step
        wants = extended_resources.wanted(definition)
        one = state.container(definition.name)
        if wants and one is not None and not one.blocked:
            found[definition.name] = Need(role, wants)
    return found


def requests(state: State, sandbox: int, now: int) -> Iterator[Event]:
    """Yield the requests that are due for the sandbox with attempt number `sandbox`, and DevicesAwaited for a claim
    whose first request got no reply.
    """
    if not served(state):
        return
    for name, need in needs(state).items():
        claim = state.wishes.get(name)
        if claim is None or _is_due(claim, need, sandbox, now):
            yield pod.DevicesRequested(
                pod=state.pod,
                uid=state.uid,
                container=name,
                role=need.role,
                resources=need.wants,
                requested_at=now,
                sandbox=sandbox,
                held=claim.held if claim else {},
            )
            if claim is not None and claim.phase == "asked":
                yield _unanswered(state, name, now)


def _unanswered(state: State, name: str, now: int) -> Event:
    """Return the event that makes a claim wait because its first request got no reply."""
    return pod.DevicesAwaited(
        pod=state.pod, uid=state.uid, container=name, reason="unanswered", message=_UNANSWERED, said_at=now
    )


def _is_due(claim: DeviceClaim, need: Need, sandbox: int, now: int) -> bool:
    match claim.phase:
        case "found":
            return True
        case "granted":
            return claim.sandbox != sandbox and claim.wants == need.wants
        case _:
            return now >= retry_at(claim)


def retry_at(claim: DeviceClaim) -> int:
    """Return when the claim's request is repeated."""
    return claim.asked_at + (ASK_AGAIN_AWAITED_MS if claim.phase == "awaited" else ASK_AGAIN_MS)


def served(state: State) -> bool:
    """Whether the kind `devices` takes part in the pod's admission."""
    return state.admission is not None and KIND in state.admission


def granted(state: State, container: str, sandbox: int) -> bool:
    """Whether the container has all the devices that it needs in the sandbox with attempt number `sandbox`."""
    need = needs(state).get(container)
    claim = state.wishes.get(container)
    if need is None:
        return True
    return claim is not None and claim.phase == "granted" and claim.sandbox == sandbox and claim.wants == need.wants


def superfluous(state: State) -> Iterator[Event]:
    """Release the claims that no longer match what their containers need, except those of containers still alive and
    those in the phase `found`.
    """
    wanted = needs(state)
    gone = [
        name
        for name, claim in state.wishes.items()
        if not _alive(state.container(name)) and claim.phase != "found" and _differs(claim, wanted.get(name))
    ]
    if gone:
        yield pod.DevicesReleased(pod=state.pod, uid=state.uid, containers=tuple(gone))


def _alive(one: Container | None) -> bool:
    return one is not None and one.alive


def _differs(claim: DeviceClaim, need: Need | None) -> bool:
    return need is None or claim.wants != need.wants


def all_released(state: State) -> Iterator[Event]:
    """Release all claims."""
    if state.wishes:
        yield pod.DevicesReleased(pod=state.pod, uid=state.uid, containers=tuple(state.wishes))


def pre_start_requests(state: State, now: int) -> Iterator[Event]:
    """Yield PreStart requests to the plugins that need one before a start; each request is repeated until there is a
    reply.
    """
    for one in state.containers:
        claim = state.wishes.get(one.name)
        if claim is None or start_allowed(state, one) or (claim.telling == this_start(one) and now < retry_at(claim)):
            continue
        yield pod.PreStartRequested(
            pod=state.pod,
            uid=state.uid,
            container=one.name,
            attempt=one.attempt,
            failures=one.start_failures,
            requested_at=now,
        )


def start_allowed(state: State, one: Container) -> bool:
    """Whether the plugins have allowed the container's current start. True if no start is in progress, or if none
    of them needs a PreStart call.
    """
    claim = state.wishes.get(one.name)
    return one.phase != "starting" or claim is None or not claim.pre_start or claim.told == this_start(one)


def this_start(one: Container) -> tuple[int, int]:
    """Return the identity of the current start: the attempt, and the number of failures before it."""
    return one.attempt, one.start_failures


def retry_times(state: State) -> Iterator[int]:
    """Yield the times at which requests are repeated."""
    for claim in state.wishes.values():
        if claim.phase in ("asked", "awaited") or claim.telling is not None:
            yield retry_at(claim)
