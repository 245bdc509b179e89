"""What a pod does next by itself, given what it is and what time it is. Pure.

Comes in: State and now (milliseconds). Goes out: the next events, none when there is nothing to do until something
happens or a wait ends. Next: `decider` asks again with the state after them, until nothing comes. One batch holds at
most one event about each container, sandbox or stray. Source: pkg/kubelet/pod_workers.go (SyncPod, SyncTerminatingPod,
SyncTerminatedPod), kuberuntime_manager.go (SyncPod).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.pod import acceptance
from chronolet.pod.actions import Actions, pod_actions
from chronolet.pod.backoff import PULL_FAILED, advanced, wait_seconds
from chronolet.pod.state import Container, State
from chronolet.pod.views import pod_view
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Container as Definition
from chronolet_schemas.podspec import pull_policy

IMAGE_FAILED_SHOWN_MS = 1000
"""How long ErrImagePull stands before ImagePullBackOff, about what the kubelet needs for its next sync. An image that
is never to be pulled, or whose name is none, keeps its reason: only a pull has a back-off there."""

_ON_ITS_WAY = ("pulling", "image_ready", "starting")

MINIMUM_GRACE_SECONDS = 2
"""What a container gets to end by itself, even if less was asked for (minimumGracePeriodInSeconds)."""


def plan(state: State, now: int) -> Sequence[Event]:
    """The next events, of which each fits the state as it is."""
    if not state.uid:
        return _successor(state, now)
    if state.termination:
        return tuple(_ending(state, now))
    return (*_strays(state, now), *_removals(state), *_living(state, now))


def _successor(state: State, now: int) -> Sequence[Event]:
    if state.successor is None:
        return ()
    next_one = state.successor
    return acceptance.accepted(
        uid=next_one.uid, source=next_one.source, digest=next_one.digest, manifest=next_one.manifest, now=now
    )


def _ending(state: State, now: int) -> Iterator[Event]:
    """Containers first, then the sandbox, then everything that is left."""
    yield from _strays(state, now)
    yield from _stops(state, now)
    if state.strays or any(one.alive for one in state.containers):
        return
    match state.sandbox.phase:
        case "starting":
            return
        case "running" | "stopping":
            yield from _sandbox_stop(state, now)
        case _:
            if state.cleanup is None or (state.cleanup.retry_at and now >= state.cleanup.retry_at):
                yield pod.CleanupRequested(pod=state.pod, uid=state.uid)


def _living(state: State, now: int) -> Iterator[Event]:
    sandbox = state.sandbox
    if sandbox.phase == "starting":
        return
    if sandbox.phase == "stopping":
        yield from _sandbox_stop(state, now)
        return
    actions = pod_actions(pod_view(state))
    if actions.kill_pod:
        yield from _kill(state, actions, now)
        return
    yield from _containers(state, actions, now)


def _containers(state: State, actions: Actions, now: int) -> Iterator[Event]:
    """Containers start in the spec's order; one that waits for the end of a back-off holds up nobody."""
    in_turn = True
    for one in state.containers:
        steps: Sequence[Event] = ()
        if one.name in actions.to_kill or one.phase == "stopping":
            yield from _stop(state, one, "SpecChanged", now)
        elif one.name in actions.app_to_start and not one.blocked and (in_turn or one.phase != "image_ready"):
            steps = tuple(_advance(state, one, now))
            yield from steps
        in_turn = in_turn and not steps and (bool(one.blocked) or one.phase not in _ON_ITS_WAY)


def _kill(state: State, actions: Actions, now: int) -> Iterator[Event]:
    """The sandbox is not what it should be, or nobody needs it any more: stop what runs in it, then make the next."""
    sandbox = state.sandbox
    if any(one.alive for one in state.containers):
        yield from _stops(state, now)
    elif sandbox.phase == "running":
        yield from _sandbox_stop(state, now)
    elif actions.create_sandbox and not sandbox.blocked and now >= sandbox.retry_at:
        yield pod.SandboxStartRequested(
            pod=state.pod,
            uid=state.uid,
            attempt=actions.sandbox_attempt,
            spec_hash=state.sandbox_hash,
            requested_at=now,
        )


def _sandbox_stop(state: State, now: int) -> Iterator[Event]:
    sandbox = state.sandbox
    if sandbox.phase == "running" or (sandbox.retry_at and now >= sandbox.retry_at):
        yield pod.SandboxStopRequested(pod=state.pod, uid=state.uid, attempt=sandbox.attempt, id=sandbox.id)


def _stops(state: State, now: int) -> Iterator[Event]:
    reason: pod.StopReason = state.termination.reason if state.termination else "SandboxGone"
    for one in state.containers:
        yield from _stop(state, one, reason, now)


def _stop(state: State, one: Container, reason: pod.StopReason, now: int) -> Iterator[Event]:
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


def _strays(state: State, now: int) -> Iterator[Event]:
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


def _removals(state: State) -> Iterator[Event]:
    for one in state.dead:
        if not one.asked:
            yield pod.ContainerRemoveRequested(
                pod=state.pod, uid=state.uid, container=one.container, attempt=one.attempt, id=one.id
            )


def _advance(state: State, one: Container, now: int) -> Iterator[Event]:
    """One step of a container on its way to running. It waits for nobody but itself."""
    definition = next(each for each in state.manifest.spec.containers if each.name == one.name)
    wanted = state.container_hashes.get(one.name, "")
    same_image = one.image == definition.image
    changed_while_waiting = one.phase == "backing_off" and one.spec_hash != wanted and now < one.retry_at
    if one.phase == "exited" or changed_while_waiting:
        yield _restart(state, one, wanted, now)
    elif one.phase == "image_ready" and same_image:
        yield _start(state, one, wanted, now)
    elif one.phase == "image_failed" and one.reason in PULL_FAILED and same_image:
        if now >= one.waits_from + IMAGE_FAILED_SHOWN_MS:
            yield _image_back_off(state, one)
    elif _may_try(one, now, same_image=same_image, same_definition=one.spec_hash == wanted):
        yield _ensure_image(state, one, definition)


def _may_try(one: Container, now: int, *, same_image: bool, same_definition: bool) -> bool:
    """The next attempt may begin, with its image; another definition waits for nothing."""
    match one.phase:
        case "waiting":
            return True
        case "image_back_off" | "image_failed":
            return not same_image or now >= one.retry_at
        case "start_failed":
            return not same_definition or now >= one.retry_at
        case "backing_off":
            return now >= one.retry_at
        case _:
            return one.phase in ("pulling", "image_ready") and not same_image


def _ensure_image(state: State, one: Container, definition: Definition) -> Event:
    return pod.ImageEnsureRequested(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.next_attempt,
        image=definition.image,
        policy=definition.image_pull_policy or pull_policy(definition.image),
    )


def _image_back_off(state: State, one: Container) -> Event:
    return pod.ImageBackOffBegan(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        image=one.image,
        retry_at=one.retry_at,
    )


def _start(state: State, one: Container, spec_hash: str, now: int) -> Event:
    return pod.ContainerStartRequested(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        sandbox_id=state.sandbox.id,
        spec_hash=spec_hash,
        requested_at=now,
    )


def _restart(state: State, one: Container, spec_hash: str, now: int) -> Event:
    """The wait counts from the end of the last run; another definition begins with a back-off of its own."""
    back_off = one.back_off if one.spec_hash == spec_hash else None
    finished_at = min(one.exit.finished_at, now) if one.exit and one.exit.finished_at else now
    waited = wait_seconds(back_off, finished_at)
    at = max(finished_at + waited * 1000, now)
    return pod.RestartScheduled(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        at=at,
        back_off_seconds=waited if at > now else 0,
        next_back_off_seconds=advanced(back_off, finished_at, at).seconds,
    )
