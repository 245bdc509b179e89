"""Folds the adoption of a pod into its state.

Input: `pod.PodAdopted`. Output: State. Next: `evolve`.
"""

from __future__ import annotations

from chronolet.pod.state import Container, ContainerKind, DeviceClaim, Exit, Sandbox, State, definitions
from chronolet_schemas import pod
from chronolet_schemas.pod import FoundContainer
from chronolet_schemas.podspec import Container as Definition


def state_of(event: pod.PodAdopted) -> State:
    """Return the state of the adopted pod."""
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
    """Return the id of the sandbox if it started before the container; otherwise empty, because the container's sandbox
    is gone.
    """
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
