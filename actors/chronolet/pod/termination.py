"""How a pod's containers are stopped: with which grace, for which reason. Pure.

Comes in: State, now. Goes out: `pod.ContainerStopRequested`. Next: `plan`. Source:
pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer), kuberuntime_termination_order.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.pod.state import Container, State
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

MINIMUM_GRACE_SECONDS = 2
"""What a container gets to end by itself, even if less was asked for (minimumGracePeriodInSeconds)."""


def stops(state: State, reason: pod.StopReason, now: int) -> Iterator[Event]:
    """Everything in the pod is to stop."""
    for one in state.containers:
        yield from stop(state, one, reason, now)


def stop(state: State, one: Container, reason: pod.StopReason, now: int) -> Iterator[Event]:
    """Ask for the stop of a running container; again after a refusal, whose grace has been running all the time."""
    grace, deadline = _grace(state, now)
    if one.phase == "running":
        yield stop_requested(state, one, reason, grace, deadline)
    elif one.phase == "stopping" and one.stop is not None and one.stop.retry_at and now >= one.stop.retry_at:
        yield stop_requested(state, one, one.stop.reason, grace, min(deadline, one.stop.deadline))


def stop_requested(state: State, one: Container, reason: pod.StopReason, grace: int, deadline: int) -> Event:
    """The stop of the attempt at hand."""
    return pod.ContainerStopRequested(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        id=one.id,
        grace_period_seconds=grace,
        deadline=deadline,
        reason=reason,
    )


def _grace(state: State, now: int) -> tuple[int, int]:
    """The grace in seconds for what is stopped now, and when it ends."""
    if state.termination:
        least = now + MINIMUM_GRACE_SECONDS * 1000
        return state.termination.grace_period_seconds, max(state.termination.deadline, least)
    grace = max(state.manifest.spec.termination_grace_period_seconds, MINIMUM_GRACE_SECONDS)
    return grace, now + grace * 1000


def strays(state: State, now: int) -> Iterator[Event]:
    for one in state.strays:
        if one.stop is None or (one.stop.retry_at and now >= one.stop.retry_at):
            grace, deadline = _grace(state, now)
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
