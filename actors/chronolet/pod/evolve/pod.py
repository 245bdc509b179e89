"""Folds a pod's own events into its state. Validates nothing and cannot fail: an event that does not fit is ignored.

Input: State and an event of the pod. Output: the next State, or None when the pod is gone. Next: `decider`. The phases
follow from `uid`, `failure`, `termination` and `cleanup` of the State; Pending, Running and so on follow from the
containers (`status`).

    pod           event                  to
    -             SpecAccepted           active
    -             PodAdopted             active        it ran before the log began
    active        SpecAccepted           active        its spec was changed
    active        PodFailed              failed        its deadline has passed, or the node refused it
    active        TerminationRequested   ending        it is deleted or replaced
    failed        SpecAccepted           failed
    failed        TerminationRequested   ending
    ending        TerminationRequested   ending        with an earlier deadline
    ending        CleanupRequested       cleaning_up   nothing of it is running any more
    cleaning_up   TerminationRequested   cleaning_up
    cleaning_up   CleanupFailed          cleaning_up
    cleaning_up   CleanupRequested       cleaning_up   the next attempt
    cleaning_up   PodEnded               -             a successor's SpecAccepted follows

If the log has lost its end and knows less about a pod than the runtime, PodAdopted replaces the state in every phase.
SuccessorAwaits does not change the phase; TerminationRequested follows unless the pod is already ending.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from chronolet.pod.evolve.admission import AdmissionEvent, evolve_admission
from chronolet.pod.evolve.adoption import state_of
from chronolet.pod.evolve.container import evolve_container, for_sandbox, refused, stop_of
from chronolet.pod.state import (
    Cleanup,
    Container,
    Failure,
    Sandbox,
    State,
    Stray,
    Successor,
    Termination,
    definitions,
)
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Container as Definition


def evolve(state: State, event: Event) -> State | None:
    """Return the state after one of the pod's own events; None when the pod is gone and has no successor. Ignores
    events of other kinds.
    """
    match event:
        case pod.PodEnded():
            return State(pod=state.pod, successor=state.successor) if state.successor else None
        case pod.ContainerEvent():
            return _container_event(state, event)
        case pod.SandboxEvent():
            return _with_sandbox(state, _sandbox(state.sandbox, event))
        case pod.PodEvent():
            return evolve_admission(state, event) if isinstance(event, AdmissionEvent) else _pod_event(state, event)
        case _:
            return state


def _pod_event(state: State, event: pod.PodEvent) -> State:
    match event:
        case pod.SpecAccepted():
            return _accepted(state, event)
        case pod.PodAdopted():
            return state_of(event)
        case pod.SuccessorAwaits():
            return replace(state, successor=_successor(event))
        case pod.TerminationRequested() | pod.PodFailed():
            return _ending(state, event)
        case pod.SpecKept() | pod.SandboxBlocked() | pod.PullSecretsChanged():
            return _spec(state, event)
        case _:
            return replace(state, cleanup=_cleanup(state.cleanup, event))


def _spec(state: State, event: pod.SpecKept | pod.SandboxBlocked | pod.PullSecretsChanged) -> State:
    if isinstance(event, pod.SpecKept):
        return replace(state, unkept=state.unkept and event.digest != state.digest)
    if isinstance(event, pod.PullSecretsChanged):
        return replace(state, pull_secrets=event.pull_secrets)
    return replace(state, sandbox=replace(state.sandbox, blocked=event.message))


def _ending(state: State, event: pod.TerminationRequested | pod.PodFailed) -> State:
    if isinstance(event, pod.PodFailed):
        failed = replace(state, failure=Failure(reason=event.reason, message=event.message))
        return replace(failed, containers=tuple(for_sandbox(one, "") for one in state.containers))
    return replace(state, termination=_termination(event))


def _cleanup(before: Cleanup | None, event: pod.PodEvent) -> Cleanup | None:
    tries = before.tries if before else 0
    match event:
        case pod.CleanupRequested():
            return Cleanup(tries=tries)
        case pod.CleanupFailed():
            return Cleanup(tries=tries + 1, retry_at=event.retry_at)
        case _:
            return before


def _successor(event: pod.SuccessorAwaits) -> Successor | None:
    if event.successor is None or event.manifest is None:
        return None
    return Successor(
        uid=event.successor,
        source=event.source,
        digest=event.digest,
        manifest=event.manifest,
        pull_secrets=event.pull_secrets,
    )


def _termination(event: pod.TerminationRequested) -> Termination:
    return Termination(
        reason=event.reason,
        grace_period_seconds=event.grace_period_seconds,
        deadline=event.deadline,
        resumed=event.resumed,
    )


def _plain(definition: Definition) -> Definition:
    """Return the definition as a plain Container, as a snapshot restores it: ephemeral containers have a different
    class.
    """
    return Definition(**{name: getattr(definition, name) for name in Definition.__struct_fields__})


def _accepted(state: State, event: pod.SpecAccepted) -> State:
    """Begin the pod's life (`uid` is new) or change its spec: containers that remain in the spec keep their state."""
    kinds = {one.name: kind for kind, one in definitions(event.manifest)}
    known = {one.name: replace(one, blocked="", left=None) for one in state.containers}
    others = [for_sandbox(one, "") for one in state.containers if one.name not in kinds]
    left = (replace(one, kind="left", left=_plain(state.definition(one.name))) for one in others if one.busy)
    return replace(
        state,
        pod=event.pod,
        uid=event.uid,
        source=event.source,
        digest=event.digest,
        manifest=event.manifest,
        accepted_at=state.accepted_at or event.accepted_at,
        sandbox_hash=event.sandbox_hash,
        container_hashes=event.container_hashes,
        unkept=bool(state.uid) and state.sandbox.phase != "absent",
        sandbox=replace(state.sandbox, blocked=""),
        containers=(
            *(replace(known.get(name) or Container(name=name), kind=kind) for name, kind in kinds.items()),
            *left,
        ),
        successor=None,
    )


def _with_sandbox(state: State, sandbox: Sandbox) -> State:
    """Set the sandbox, and mark containers created for another sandbox as outdated.

    Those of an ending or failed pod are not marked: the clean-up removes them.
    """
    if state.over:
        return replace(state, sandbox=sandbox)
    used = "" if sandbox.phase == "dead" else sandbox.id
    containers = tuple(for_sandbox(one, used) for one in state.containers)
    return replace(state, sandbox=sandbox, containers=containers)


def _sandbox(sandbox: Sandbox, event: pod.SandboxEvent) -> Sandbox:
    match event:
        case pod.SandboxStartRequested() | pod.SandboxStarted() | pod.SandboxStartFailed():
            return _sandbox_start(sandbox, event)
        case pod.SandboxCreated():
            return replace(sandbox, id=event.id)
        case pod.SandboxStopRequested():
            return replace(sandbox, phase="stopping", retry_at=0)
        case pod.SandboxStopFailed():
            return replace(sandbox, stop_tries=sandbox.stop_tries + 1, retry_at=event.retry_at, message=event.message)
        case pod.SandboxExited():
            died = {"retry_at": event.next_at, "finished_at": event.finished_at}
            return replace(sandbox, phase="dead", id=event.id, stop_tries=0, **died)
        case _:
            return sandbox


def _sandbox_start(
    sandbox: Sandbox, event: pod.SandboxStartRequested | pod.SandboxStarted | pod.SandboxStartFailed
) -> Sandbox:
    match event:
        case pod.SandboxStartRequested():
            return Sandbox(
                phase="starting",
                attempt=event.attempt,
                ip=sandbox.ip,  # stays in the status until the new sandbox has an address
                spec_hash=event.spec_hash,
                requested_at=event.requested_at,
                host_ip=sandbox.host_ip,
                failures=sandbox.failures if event.attempt == sandbox.attempt else 0,
                message=sandbox.message if event.attempt == sandbox.attempt else "",
            )
        case pod.SandboxStarted():
            return replace(
                sandbox,
                phase="running",
                id=event.id,
                ip=event.ip,
                host_ip=event.host_ip or sandbox.host_ip,
                started_at=event.started_at,
                failures=0,
                message="",
            )
        case _:
            failures = sandbox.failures + 1
            return replace(
                sandbox, phase="failed", id="", failures=failures, retry_at=event.retry_at, message=event.message
            )


def _container_event(state: State, event: pod.ContainerEvent) -> State:
    match event:
        case pod.StrayFound():
            return _stray_found(state, event)
        case pod.ContainerStopRequested(reason="Superseded"):
            return _stray_stopped(state, event)
        case pod.ContainerExited() | pod.ContainerStopFailed() if state.stray(event.id):
            return _stray_event(state, event)
        case _:
            return _own_container(state, event)


def _stray_found(state: State, event: pod.StrayFound) -> State:
    if state.stray(event.id):
        return state
    stray = Stray(container=event.container, attempt=event.attempt, id=event.id, uid=event.uid)
    return replace(state, strays=(*state.strays, stray))


def _stray_stopped(state: State, event: pod.ContainerStopRequested) -> State:
    return _stray(state, event.id, lambda one: replace(one, stop=stop_of(event, one.stop)))


def _stray(state: State, container_id: str, change: Callable[[Stray], Stray]) -> State:
    return replace(state, strays=tuple(change(one) if one.id == container_id else one for one in state.strays))


def _stray_event(state: State, event: pod.ContainerExited | pod.ContainerStopFailed) -> State:
    if isinstance(event, pod.ContainerStopFailed):
        return _stray(state, event.id, lambda one: replace(one, stop=refused(one.stop, event)))
    return replace(state, strays=tuple(one for one in state.strays if one.id != event.id))


def _own_container(state: State, event: pod.ContainerEvent) -> State:
    """Return the state after an event about the current attempt of one of the pod's containers."""
    before = state.container(event.container)
    if before is None:
        return state
    after = evolve_container(before, event)
    if before.kind == "left" and not after.busy:
        return replace(state, containers=tuple(one for one in state.containers if one is not before))
    return replace(state, containers=tuple(after if one is before else one for one in state.containers))
