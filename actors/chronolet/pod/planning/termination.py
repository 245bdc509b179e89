"""Stops a pod's containers in order, with grace periods and preStop hooks. Pure.

Input: State, now. Output: `pod.ContainerStopRequested`, `pod.ContainerStopReleased`. Next: `plan`. Source:
pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer), kuberuntime_termination_order.go.

The stops of all containers of a pod are requested together. A stop that is held sends no signal until its preStop hook
has ended and its turn has come, or until its grace period has expired: sidecars wait for the app containers and then
for the sidecars that were started after them.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.pod.planning import lifecycle, probing
from chronolet.pod.state import Container, State, Stop
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

MINIMUM_GRACE_SECONDS = 2
"""The shortest grace period, even if a shorter one was requested (minimumGracePeriodInSeconds)."""

_MINIMUM_GRACE_MS = MINIMUM_GRACE_SECONDS * 1000

_IN_PLACE: frozenset[pod.StopReason] = frozenset(("SpecChanged", "FailedPostStartHook", *probing.FAILED))
"""Reasons to stop one container while its pod continues: no order applies."""


def stops(state: State, reason: pod.StopReason, now: int) -> Iterator[Event]:
    """Stop all containers of the pod."""
    for one in state.containers:
        yield from stop(state, one, reason, now)


def stop(state: State, one: Container, reason: pod.StopReason, now: int) -> Iterator[Event]:
    """Request the stop of a running container, release a held stop, or retry after a refusal. A refusal does not extend
    the grace period.
    """
    grace, deadline = _grace(state, now, _own_grace(state, one, one.stop.reason if one.stop else reason))
    if one.phase == "running":
        yield stop_requested(state, one, reason, grace, deadline)
    elif one.phase == "stopping" and one.stop is not None:
        if one.stop.held:
            yield from _held(state, one, one.stop, now)
        elif one.stop.retry_at and now >= one.stop.retry_at:
            yield stop_requested(state, one, one.stop.reason, grace, min(deadline, one.stop.deadline))


def stop_requested(state: State, one: Container, reason: pod.StopReason, grace: int, deadline: int) -> Event:
    """Return the request to stop the current attempt. `grace` is in seconds, `deadline` in milliseconds."""
    resumed = state.termination is not None and state.termination.resumed
    pre_stop = None if resumed else lifecycle.handler_of(state, one.name, "PreStop")
    return pod.ContainerStopRequested(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        id=one.id,
        grace_period_seconds=grace,
        deadline=deadline,
        reason=reason,
        pre_stop=pre_stop,
        held=pre_stop is not None or not _its_turn(state, one, reason),
    )


def _held(state: State, one: Container, held: Stop, now: int) -> Iterator[Event]:
    if held.pre_stop is not None or one.hook is not None:
        yield from lifecycle.steps(state, one, now)
    elif now >= held.deadline or _its_turn(state, one, held.reason):
        yield pod.ContainerStopReleased(
            pod=state.pod,
            uid=state.uid,
            container=one.name,
            attempt=one.attempt,
            id=one.id,
            deadline=max(held.deadline, now + _MINIMUM_GRACE_MS),
        )


def _its_turn(state: State, one: Container, reason: pod.StopReason) -> bool:
    """Whether none of the containers that must end before this one is alive."""
    if one.kind != "sidecar" or reason in _IN_PLACE:
        return True
    later = state.containers[state.containers.index(one) + 1 :]
    return not any(other.alive for other in later if other.kind in ("sidecar", "app"))


def _own_grace(state: State, one: Container, reason: pod.StopReason) -> int:
    """Return the grace period of a container that is stopped for this reason, in seconds."""
    own = probing.grace_seconds(state, one, reason)
    return state.manifest.spec.termination_grace_period_seconds if own is None else own


def _grace(state: State, now: int, own: int) -> tuple[int, int]:
    """Return the grace period (seconds) of a stop requested now, and its deadline (milliseconds).

    `own`: the container's grace period, which applies unless the pod is being terminated.
    """
    if state.termination:
        return state.termination.grace_period_seconds, max(state.termination.deadline, now + _MINIMUM_GRACE_MS)
    grace = max(own, MINIMUM_GRACE_SECONDS)
    return grace, now + grace * 1000


def strays(state: State, now: int) -> Iterator[Event]:
    """Request the stop of every stray, without order or hooks; repeat a refused request when its wait has ended."""
    for one in state.strays:
        if one.stop is None or (one.stop.retry_at and now >= one.stop.retry_at):
            grace, deadline = _grace(state, now, state.manifest.spec.termination_grace_period_seconds)
            yield pod.ContainerStopRequested(
                pod=state.pod,
                uid=one.uid,
                container=one.container,
                attempt=one.attempt,
                id=one.id,
                grace_period_seconds=grace,
                deadline=deadline,
                reason="Superseded",
            )
