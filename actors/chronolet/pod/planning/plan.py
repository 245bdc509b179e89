"""A pod's next steps, planned from its state and the time. Pure.

Input: State and now (milliseconds). Output: the next events, none if there is nothing to do until a message arrives or
a wait ends. Next: `decider`, which calls `plan` again with the state after these events until it returns none; before
it calls `plan`, the decider records which kinds admit the pod, and requests its probes. One batch moves each container,
the sandbox and each stray by at most one step; requests to devices and qos, and releases, may be added. Source:
pkg/kubelet/pod_workers.go (SyncPod, SyncTerminatingPod, SyncTerminatedPod), kuberuntime_manager.go (SyncPod).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.pod.admission import acceptance, admission, pull_secrets
from chronolet.pod.planning import ahead, probing
from chronolet.pod.planning.actions import Actions, pod_actions
from chronolet.pod.planning.backoff import KUBELET, Limits
from chronolet.pod.planning.deadline import DEADLINE_EXCEEDED, DEADLINE_MESSAGE, deadline_passed
from chronolet.pod.planning.lifecycle import steps as steps_of_hook
from chronolet.pod.planning.starting import advance
from chronolet.pod.planning.termination import stop, stops, strays
from chronolet.pod.planning.views import pod_view, sandbox_good
from chronolet.pod.state import ON_ITS_WAY, POST_START_ERROR, Container, State, Termination
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event


def plan(state: State, now: int, limits: Limits = KUBELET) -> Sequence[Event]:
    """Return the next events, each decided from the given state, without the effects of the others. `limits`: the
    limits of the restart back-off.
    """
    if not state.uid:
        return _successor(state, now)
    if state.termination:
        return tuple(_ending(state, state.termination, now))
    rest = _failed(state, now) if state.failure else _active(state, now, limits)
    return (*strays(state, now), *rest)


def _successor(state: State, now: int) -> Sequence[Event]:
    if state.successor is None:
        return ()
    next_one = state.successor
    accepted = acceptance.accepted(
        uid=next_one.uid, source=next_one.source, digest=next_one.digest, manifest=next_one.manifest, now=now
    )
    return (*accepted, *pull_secrets.with_spec(state, state.pod, next_one.uid, next_one.pull_secrets))


def _ending(state: State, termination: Termination, now: int) -> Iterator[Event]:
    """Stop containers first, then the sandbox, then clean up. The sandbox is stopped once all processes have ended,
    even while the runtime is still cleaning up after them.
    """
    yield from strays(state, now)
    yield from stops(state, termination.reason, now)
    yield from admission.abandoned_starts(state, now)
    if state.strays or any(one.uses_sandbox for one in state.containers):
        return
    busy = any(one.busy for one in state.containers)
    if not busy:
        yield from admission.released(state)
    match state.sandbox.phase:
        case "starting":
            return
        case "running" | "stopping":
            yield from _sandbox_stop(state, now)
        case _ if busy:
            return
        case _ if any(one.exit is not None and not one.exit.read for one in state.containers):
            return  # the clean-up would remove their termination messages
        case _:
            if state.cleanup is None or (state.cleanup.retry_at and now >= state.cleanup.retry_at):
                yield pod.CleanupRequested(pod=state.pod, uid=state.uid)


def _failed(state: State, now: int) -> Iterator[Event]:
    """Yield the steps of a failed pod: it starts nothing, and its dead containers are kept for inspection."""
    yield from stops(state, "PodFailed", now)
    yield from admission.abandoned_starts(state, now)
    if not any(one.busy for one in state.containers):
        yield from admission.released(state)
    in_use = any(one.uses_sandbox for one in state.containers)
    if state.sandbox.phase in ("running", "stopping") and not in_use:
        yield from _sandbox_stop(state, now, finished=True)


def _active(state: State, now: int, limits: Limits) -> Iterator[Event]:
    actions = pod_actions(pod_view(state))
    if not _finished(actions) and deadline_passed(state, now):
        yield pod.PodFailed(pod=state.pod, uid=state.uid, reason=DEADLINE_EXCEEDED, message=DEADLINE_MESSAGE)
    else:
        yield from _apply_actions(state, actions, now, limits)


def _apply_actions(state: State, actions: Actions, now: int, limits: Limits) -> Iterator[Event]:
    sandbox = state.sandbox
    if sandbox.phase == "starting":
        yield from ahead.steps(state, _first_to_start(state))
        return
    if sandbox.phase == "stopping":
        yield from _sandbox_stop(state, now, finished=_finished(actions))
        return
    if actions.kill_pod:
        yield from _kill(state, actions, now)
        return
    yield from _containers(state, actions, now, limits)


def _first_to_start(state: State) -> Sequence[str]:
    """Return the names of the containers that start first in a new sandbox, excluding those that have run before."""
    init = state.of_kind("init", "sidecar")
    return [one.name for one in (init[:1] or state.of_kind("app")) if one.exit is None]


def _containers(state: State, actions: Actions, now: int, limits: Limits) -> Iterator[Event]:
    """Start containers in the spec's order, and stop those that must be stopped; a container in back-off does not hold
    up the others.

    Ephemeral containers do not wait for others: they exist to inspect a pod that does not start.
    """
    to_start = {*actions.init_to_start, *actions.app_to_start, *actions.ephemeral_to_start}
    yield from admission.while_it_runs(state, now)
    in_turn = True
    for one in state.containers:
        steps: Sequence[Event] = ()
        ready = in_turn or one.kind == "ephemeral"
        if one.name in actions.to_kill or one.phase == "stopping" or _outdated(state, one):
            yield from stop(state, one, _stop_reason(state, one), now)
            yield from ahead.successor(state, one, now)
        elif one.phase == "running" and one.reason == POST_START_ERROR:
            yield from stop(state, one, "FailedPostStartHook", now)
        elif one.name in to_start and not one.blocked and (ready or one.phase != "image_ready"):
            steps = tuple(advance(state, one, now, limits)) if admission.may_start(state, one) else ()
            yield from steps
        elif one.in_post_start:
            yield from steps_of_hook(state, one, now)
        in_turn = in_turn and not steps and not _holds_up(one)


def _stop_reason(state: State, one: Container) -> pod.StopReason:
    """Return the reason that the kubelet would find first: a changed definition, then a failed probe."""
    changed = one.spec_hash != state.container_hashes.get(one.name, "")
    return "SpecChanged" if changed else probing.failed(one) or "SpecChanged"


def _outdated(state: State, one: Container) -> bool:
    """Whether a running init container has an old definition, or the container is no longer in the spec.

    `actions` does not detect this, because a kubelet treats a changed pod as a new one.
    """
    if one.kind == "init" and one.phase == "running":
        return one.spec_hash != state.container_hashes.get(one.name, "")
    return one.kind == "left"


def _holds_up(one: Container) -> bool:
    """Whether containers that start after this one wait for it."""
    if one.kind == "sidecar" and (one.phase == "stopping" or one.reason == POST_START_ERROR):
        return True  # its next attempt comes first
    return one.in_post_start or (one.phase in ON_ITS_WAY and not one.blocked)


def _kill(state: State, actions: Actions, now: int) -> Iterator[Event]:
    """Yield the next step to stop a sandbox that is outdated or no longer needed: its containers, then the sandbox;
    then start the next one, if one is needed.
    """
    sandbox = state.sandbox
    if any(one.busy for one in state.containers):
        yield from _stop_all(state, now)
    elif sandbox.phase == "running":
        yield from _sandbox_stop(state, now, finished=_finished(actions))
    elif not actions.create_sandbox:
        yield from admission.released(state)
    elif not sandbox.blocked and now >= sandbox.retry_at:
        requests = tuple(admission.before_sandbox(state, actions.sandbox_attempt, now))
        yield from requests
        if not requests and admission.admitted(state, actions.sandbox_attempt):
            yield _sandbox_start(state, actions.sandbox_attempt, now)


def _sandbox_start(state: State, attempt: int, now: int) -> Event:
    return pod.SandboxStartRequested(
        pod=state.pod, uid=state.uid, attempt=attempt, spec_hash=state.sandbox_hash, requested_at=now
    )


def _stop_all(state: State, now: int) -> Iterator[Event]:
    """Stop all containers, because the sandbox is gone, outdated or blocked, or because the pod is complete. In a
    complete pod, a container whose probe failed is stopped for that reason, with the probe's grace period.
    """
    if not sandbox_good(state):
        yield from stops(state, "SandboxGone", now)
        return
    for one in state.containers:
        yield from stop(state, one, probing.failed(one) or "PodCompleted", now)


def _finished(actions: Actions) -> bool:
    """Whether the pod is complete: none of its containers should run any more, although its end was not requested."""
    return actions.kill_pod and not actions.create_sandbox


def _sandbox_stop(state: State, now: int, *, finished: bool = False) -> Iterator[Event]:
    sandbox = state.sandbox
    if sandbox.phase == "running" or (sandbox.retry_at and now >= sandbox.retry_at):
        yield pod.SandboxStopRequested(
            pod=state.pod, uid=state.uid, attempt=sandbox.attempt, id=sandbox.id, finished=finished
        )
