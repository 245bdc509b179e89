"""What a pod's containers want of device plugins: when it is asked for, is it there, when is it given back. Pure.

Comes in: State, now. Goes out: `pod.DevicesRequested`, `pod.DevicesReleased`, `pod.PreStartRequested`. Next:
`admission`. Source: pkg/kubelet/cm/devicemanager/manager.go (Allocate, GetDeviceRunContainerOptions).

    found -> asked -> awaited -> granted -> asked (before another sandbox)
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
"""After how long without an answer the same is asked again; and where the answer was: not yet."""

_UNANSWERED = "waiting for an answer of `devices`: does a process of this node host it?"

_ROLES: dict[ContainerKind, Role] = {"init": "init", "sidecar": "sidecar", "app": "app"}


class Need(NamedTuple):
    """What a container wants by its spec."""

    role: Role
    wants: dict[str, int]


def needs(state: State) -> dict[str, Need]:
    """The containers that want devices and may start as they are written, in the order in which they start."""
    found = {}
    for kind, definition in definitions(state.manifest):
        role = _ROLES.get(kind)
        if role is None or not any("/" in name for name in definition.resources.limits):
            continue  # told first by what costs nothing: this is asked of every pod at every step
        wants = extended_resources.wanted(definition)
        one = state.container(definition.name)
        if wants and one is not None and not one.blocked:
            found[definition.name] = Need(role, wants)
    return found


def requests(state: State, sandbox: int, now: int) -> Iterator[Event]:
    """What is to be asked for the sandbox of this attempt, and was not yet."""
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
    """Nobody has said a word to the first request."""
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
    """When the same is asked once more."""
    return claim.asked_at + (ASK_AGAIN_AWAITED_MS if claim.phase == "awaited" else ASK_AGAIN_MS)


def served(state: State) -> bool:
    """Whether there is somebody to ask."""
    return state.admission is not None and KIND in state.admission


def granted(state: State, container: str, sandbox: int) -> bool:
    """Whether the container has all that it wants, for this sandbox."""
    need = needs(state).get(container)
    claim = state.wishes.get(container)
    if need is None:
        return True
    return claim is not None and claim.phase == "granted" and claim.sandbox == sandbox and claim.wants == need.wants


def superfluous(state: State) -> Iterator[Event]:
    """What is held by what is dead and does not want it any more, or wants something else."""
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
    """Everything is given back."""
    if state.wishes:
        yield pod.DevicesReleased(pod=state.pod, uid=state.uid, containers=tuple(state.wishes))


def pre_start_requests(state: State, now: int) -> Iterator[Event]:
    """Plugins that want to be told of a start are told before it, and again where they do not answer."""
    for one in state.containers:
        claim = state.wishes.get(one.name)
        if claim is None or start_announced(state, one) or (claim.telling == this_start(one) and now < retry_at(claim)):
            continue
        yield pod.PreStartRequested(
            pod=state.pod,
            uid=state.uid,
            container=one.name,
            attempt=one.attempt,
            failures=one.start_failures,
            requested_at=now,
        )


def start_announced(state: State, one: Container) -> bool:
    """Nothing has to be said any more before this attempt starts."""
    claim = state.wishes.get(one.name)
    return one.phase != "starting" or claim is None or not claim.pre_start or claim.told == this_start(one)


def this_start(one: Container) -> tuple[int, int]:
    """The start at hand, told from those before it."""
    return one.attempt, one.start_failures


def retry_times(state: State) -> Iterator[int]:
    """When something is asked again."""
    for claim in state.wishes.values():
        if claim.phase in ("asked", "awaited") or claim.telling is not None:
            yield retry_at(claim)
