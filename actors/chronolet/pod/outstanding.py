"""The effects that a pod's state requires. Pure.

Input: State. Output: the Effects of `wanted`, at most one for each subject. Next: the host, which starts and cancels
them, and `effect_results`, which ignores the results of any other effect. An intent identifies one request: uid,
attempt, and the number of failures before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from chronolet.pod import wanted
from chronolet.pod.admission import admission, pull_secrets
from chronolet.pod.planning import lifecycle
from chronolet.pod.state import ON_ITS_WAY, Container, State, Stop, Stray, Termination
from chronolet.pod.wanted import Origin, Wanted
from chronolet.rules.refs import AttemptRef, ContainerOfPod, SandboxRef
from chronolet_schemas.devices import Answer
from chronolet_schemas.pod import Ending
from chronolet_schemas.podspec import Pod


def outstanding(state: State) -> Sequence[Wanted]:
    """Return the effects that should be running now."""
    if not state.uid:
        return ()
    found = (
        *_spec(state),
        *_sandbox(state),
        *_containers(state),
        *_hooks(state),
        *_exits(state),
        *_strays(state),
        *_cleanup(state),
    )
    if state.termination is None:
        return found
    ending = _ending(state.termination)
    return tuple(replace(one, ending=ending) if one.uid == state.uid else one for one in found)


def _ending(termination: Termination) -> Ending:
    return Ending(
        reason=termination.reason,
        grace_period_seconds=termination.grace_period_seconds,
        deadline=termination.deadline,
    )


def _spec(state: State) -> Iterator[Wanted]:
    # A start in progress writes the spec of its request, which may be older: the new spec is written after it.
    starting = state.sandbox.phase == "starting" or any(one.phase == "starting" for one in state.containers)
    if state.unkept and not starting and state.termination is None:
        yield wanted.KeepSpec(
            subject="spec",
            intent=f"keep/{state.uid}/{state.digest}",
            pod=state.pod,
            uid=state.uid,
            manifest=state.manifest,
            origin=_origin(state),
        )


def _sandbox(state: State) -> Iterator[Wanted]:
    sandbox = state.sandbox
    where = f"{state.uid}/{sandbox.attempt}"
    if sandbox.phase == "starting" and state.over:
        # A start may be in progress, or was when the agent was killed: the result shows whether there is a sandbox to
        # stop.
        yield wanted.FindSandbox(
            subject="sandbox",
            intent=f"find/{where}/{sandbox.failures}",
            **_sandbox_ref(state),
        )
    elif sandbox.phase == "starting":
        yield wanted.StartSandbox(
            subject="sandbox",
            intent=f"start/{where}/{sandbox.failures}",
            spec_hash=sandbox.spec_hash,
            manifest=state.manifest,
            origin=_origin(state),
            cgroup_parent=state.share.parent,
            begun_at=state.accepted_at,
            **_sandbox_ref(state),
        )
    elif sandbox.phase == "stopping" and not sandbox.retry_at:
        yield wanted.StopSandbox(
            subject="sandbox",
            intent=f"stop/{where}/{sandbox.stop_tries}",
            id=sandbox.id,
            **_sandbox_ref(state),
        )


def _sandbox_ref(state: State) -> SandboxRef:
    return SandboxRef(pod=state.pod, uid=state.uid, attempt=state.sandbox.attempt)


def _attempt(state: State, one: Container, attempt: int) -> AttemptRef:
    return AttemptRef(pod=state.pod, uid=state.uid, container=one.name, attempt=attempt)


def _origin(state: State) -> wanted.Origin:
    return wanted.Origin(source=state.source, digest=state.digest, accepted_at=state.accepted_at)


def _containers(state: State) -> Iterator[Wanted]:
    for one in state.containers:
        subject = f"container/{one.name}"
        yield from _creation(state, one)
        match one.phase:
            case "pulling" if not state.over:
                yield _ensure_image(state, one, subject)
            case "starting" if admission.start_allowed(state, one):
                if state.over:
                    yield _find(state, one, subject, f"{one.attempt}/{one.start_failures}", one.attempt)
                else:
                    yield _start(state, one, subject)
            case "stopping" if one.stop is not None and not one.stop.held and not one.stop.retry_at:
                yield _stop(state, subject, one, one.stop)
            case _:
                continue


def _hooks(state: State) -> Iterator[Wanted]:
    for one in state.containers:
        yield from lifecycle.effects(state, one)


def _exits(state: State) -> Iterator[Wanted]:
    """Yield the reads of termination messages. Unless the pod is over, containers on their way to their next start are
    skipped. Only the clean-up waits for them; a start must not queue behind them.
    """
    for one in state.containers:
        dead = one.exit
        if dead is None or dead.read or (one.phase in ON_ITS_WAY and not state.over):
            continue
        definition = state.definition(one.name)
        yield wanted.ReadExit(
            subject=f"exit/{dead.id}",
            intent=f"read/{dead.id}",
            id=dead.id,
            path=definition.termination_message_path,
            policy=definition.termination_message_policy,
            exit_code=dead.exit_code,
            **_attempt(state, one, dead.attempt),
        )


def _ensure_image(state: State, one: Container, subject: str) -> Wanted:
    return wanted.EnsureImage(
        subject=subject,
        intent=f"image/{state.uid}/{one.attempt}/{one.image_failures}/{one.image}",
        image=one.image,
        policy=one.policy,
        secrets=pull_secrets.usable(state),
        **_attempt(state, one, one.attempt),
    )


def _start(state: State, one: Container, subject: str) -> Wanted:
    made = one.ahead if one.ahead is not None and one.ahead.sandbox_id == state.sandbox.id else None
    return wanted.StartContainer(
        subject=subject,
        intent=f"start/{state.uid}/{one.attempt}/{one.start_failures}",
        attempt=one.attempt,
        sandbox_id=state.sandbox.id,
        spec_hash=one.spec_hash,
        image_id=one.image_id,
        made_id=made.id if made else "",
        **_creation_fields(state, one),
    )


def _creation(state: State, one: Container) -> Iterator[Wanted]:
    """Yield the effect that creates an attempt's container ahead of its start, or that finds or removes it. It runs
    concurrently with the container's other effects.
    """
    ahead = one.ahead
    if ahead is None or not ahead.pending:
        return
    subject = f"{wanted.CREATION}{one.name}"
    if state.termination is None and ahead.outdated:
        yield wanted.DiscardContainer(
            subject=subject,
            intent=f"discard/{state.uid}/{ahead.attempt}/{ahead.sandbox_id}",
            **_attempt(state, one, ahead.attempt),
        )
        return
    if state.over:
        yield _find(state, one, subject, f"ahead/{ahead.attempt}", ahead.attempt)
        return
    yield wanted.CreateContainer(
        subject=subject,
        intent=f"create/{state.uid}/{ahead.attempt}/{ahead.sandbox_id}",
        attempt=ahead.attempt,
        sandbox_id=ahead.sandbox_id,
        spec_hash=ahead.spec_hash,
        image_id=ahead.image_id,
        image=ahead.image,
        **_creation_fields(state, one),
    )


class _Creation(ContainerOfPod):
    """The fields of `wanted.ContainerEffect` that are the same for every attempt of a container."""

    sandbox_ip: str
    begun_at: int
    manifest: Pod
    origin: Origin
    cgroup_parent: str
    devices: Answer
    device_ids: dict[str, tuple[str, ...]]


def _creation_fields(state: State, one: Container) -> _Creation:
    claim = state.wishes.get(one.name)
    return _Creation(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        sandbox_ip=state.sandbox.ip,
        begun_at=state.accepted_at,
        manifest=state.manifest,
        origin=_origin(state),
        cgroup_parent=state.share.parent,
        devices=claim.answer if claim else Answer(),
        device_ids=claim.devices if claim else {},
    )


def _find(state: State, one: Container, subject: str, which: str, attempt: int) -> Wanted:
    """Return the effect that finds the container of a start or creation that was in progress when the pod ended,
    because it may have succeeded.
    """
    return wanted.FindContainer(
        subject=subject,
        intent=f"find/{state.uid}/{which}",
        **_attempt(state, one, attempt),
    )


def _stop(state: State, subject: str, one: Container | Stray, stop: Stop) -> Wanted:
    uid = one.uid if isinstance(one, Stray) else state.uid
    return wanted.StopContainer(
        subject=subject,
        intent=f"stop/{uid}/{one.attempt}/{stop.deadline}/{stop.tries}",
        pod=state.pod,
        uid=uid,
        container=one.container if isinstance(one, Stray) else one.name,
        attempt=one.attempt,
        id=one.id,
        grace_period_seconds=stop.grace_period_seconds,
        deadline=stop.deadline,
        with_pod=state.over and isinstance(one, Container),
    )


def _strays(state: State) -> Iterator[Wanted]:
    for one in state.strays:
        if one.stop is not None and not one.stop.retry_at:
            yield _stop(state, f"stray/{one.id}", one, one.stop)


def _cleanup(state: State) -> Iterator[Wanted]:
    if state.cleanup is not None and not state.cleanup.retry_at:
        yield wanted.Cleanup(
            subject="pod",
            intent=f"cleanup/{state.uid}/{state.cleanup.tries}",
            pod=state.pod,
            uid=state.uid,
        )
