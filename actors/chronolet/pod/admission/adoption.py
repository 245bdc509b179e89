"""Adoption of a running pod by a log that does not know it, from the runtime's containers. Pure.

Input: `pod.AdoptPod`. Output: `pod.PodAdopted`, from which `evolve` takes the state; a refusal if the pod is already in
the log, unless the log has lost its end and knows less of the pod than the runtime. Next: `plan`, which takes the steps
that such a pod needs. Source: the kubelet's restart, which finds its pods in the runtime
(pkg/kubelet/kuberuntime/kuberuntime_manager.go, GetPodStatus). Back-offs are reset.

A container that runs as an older attempt, or under a name that the spec no longer has, is a stray; `pleg` reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chronolet.pod.admission import acceptance
from chronolet.pod.admission.hashes import container_hashes, sandbox_hash
from chronolet.pod.state import SANDBOX, Container, ContainerKind, DeviceClaim, Exit, Sandbox, State, definitions
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.pod import FoundContainer
from chronolet_schemas.podspec import Container as Definition


class _Attempts(NamedTuple):
    """The attempts of one container that ran: the newest, and the last dead one before it if the newest runs."""

    newest: FoundContainer
    before: FoundContainer | None


def adopted(state: State, command: pod.AdoptPod) -> Sequence[Event]:
    """The events that answer an AdoptPod."""
    if state.uid and not (command.end_lost and knows_less(state, command)):
        reason = f"{state.pod} is already in the log, with uid {state.uid}"
        return (pod.AdoptionRefused(pod=command.pod, uid=command.uid, reason=reason),)
    manifest, found = command.manifest, command.found
    sandbox = _attempts(found, SANDBOX)
    each = [one for _, named in definitions(manifest) if (one := _attempts(found, named.name)) is not None]
    return (
        pod.PodAdopted(
            pod=command.pod,
            uid=command.uid,
            source=command.source,
            digest=command.digest,
            manifest=manifest,
            accepted_at=command.accepted_at,
            sandbox_hash=sandbox_hash(manifest),
            container_hashes=container_hashes(manifest),
            host_ip=command.host_ip,
            sandbox=sandbox.newest if sandbox else None,
            containers=tuple(one.newest for one in each),
            before=tuple(one.before for one in each if one.before is not None),
        ),
        *acceptance.blocked(command.uid, manifest),
        *_going_on_to_end(command),
    )


def knows_less(state: State, command: pod.AdoptPod) -> bool:
    """Whether a log that has lost its end lacks a fact about the pod that its next start would not find by name:
    another life under the name, another manifest, a later attempt, a termination that had begun.
    """
    if (state.uid, state.digest) != (command.uid, command.digest):
        return True
    if command.ending is not None and state.termination is None:
        return True
    return any(_is_later(state, one) for one in command.found if one.state != "created")


def _is_later(state: State, found: FoundContainer) -> bool:
    if found.container == SANDBOX:
        return found.attempt > state.sandbox.attempt
    one = state.container(found.container)
    if one is None:
        return False
    return found.attempt > (one.attempt if one.alive else one.next_attempt)


def _going_on_to_end(command: pod.AdoptPod) -> Sequence[Event]:
    """Resume a termination that had already begun."""
    ending = command.ending
    if ending is None:
        return ()
    return (
        pod.TerminationRequested(
            pod=command.pod,
            uid=command.uid,
            reason=ending.reason,
            grace_period_seconds=ending.grace_period_seconds,
            deadline=ending.deadline,
            resumed=True,
        ),
    )


def _attempts(found: Iterable[FoundContainer], name: str) -> _Attempts | None:
    """None if it never ran. A container that was created and not started is found by name at the next start."""
    came_to_run = (one for one in found if one.container == name and one.state != "created")
    attempts = sorted(came_to_run, key=lambda one: one.attempt, reverse=True)
    if not attempts:
        return None
    newest, *older = attempts
    before = next((one for one in older if one.state == "exited"), None) if newest.state == "running" else None
    return _Attempts(newest, before)


def state_of(event: pod.PodAdopted) -> State:
    """The pod's state according to the event."""
    newest = {one.container: one for one in event.containers}
    before = {one.container: one for one in event.before}
    return State(
        pod=event.pod,
        uid=event.uid,
        source=event.source,
        digest=event.digest,
        manifest=event.manifest,
        accepted_at=event.accepted_at,
        sandbox_hash=event.sandbox_hash,
        container_hashes=event.container_hashes,
        sandbox=_sandbox(event),
        containers=tuple(
            _container(kind, one, event.sandbox, newest.get(one.name), before.get(one.name))
            for kind, one in definitions(event.manifest)
        ),
        wishes={
            one.container: DeviceClaim(wants={}, phase="found", held=one.devices)
            for one in event.containers
            if one.devices
        },
    )


def _sandbox(event: pod.PodAdopted) -> Sandbox:
    found = event.sandbox
    if found is None:
        return Sandbox(host_ip=event.host_ip)
    return Sandbox(
        phase="running" if found.state == "running" else "dead",
        attempt=found.attempt,
        id=found.id,
        ip=event.host_ip if event.manifest.spec.host_network else found.ip,
        host_ip=event.host_ip,
        spec_hash=found.spec_hash,
        started_at=found.started_at,
    )


def _container(
    kind: ContainerKind,
    definition: Definition,
    sandbox: FoundContainer | None,
    found: FoundContainer | None,
    before: FoundContainer | None,
) -> Container:
    if found is None:
        return Container(name=definition.name, kind=kind)
    runs = found.state == "running"
    last = before if runs else found
    return Container(
        name=definition.name,
        kind=kind,
        phase="running" if runs else "exited",
        attempt=found.attempt,
        id=found.id,
        spec_hash=found.spec_hash,
        sandbox_id=_ran_in(found, sandbox),
        image=definition.image,
        image_id=found.image_id,
        started_at=found.started_at,
        exit=_exit(last, sandbox) if last else None,
    )


def _ran_in(found: FoundContainer, sandbox: FoundContainer | None) -> str:
    """The id of the newest sandbox if it is older than the container; else empty: the container's sandbox is gone."""
    return sandbox.id if sandbox is not None and found.started_at >= sandbox.started_at else ""


def _exit(found: FoundContainer, sandbox: FoundContainer | None) -> Exit:
    return Exit(
        attempt=found.attempt,
        id=found.id,
        sandbox_id=_ran_in(found, sandbox),
        exit_code=found.exit_code,
        reason=found.reason,
        message=found.message,
        started_at=found.started_at,
        finished_at=found.finished_at,
    )
