"""What a message from outside means for a pod: the facts that follow from it, before the pod does anything about them.

Comes in: State, a message (another actor's event, an effect's answer), now. Goes out: events of the pod; none if the
message is outdated or about something else. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronolet.kernel.decider import EffectFailed
from chronolet.pod import acceptance, pull_secrets, signals, telling, wanted
from chronolet.pod.backoff import FAILED_MOUNT, RESYNC_SECONDS, image_wait_seconds, mount_wait_milliseconds
from chronolet.pod.outstanding import outstanding
from chronolet.pod.state import State, Successor
from chronolet.pod.termination import MINIMUM_GRACE_SECONDS, stop_requested
from chronolet_schemas import manifests, pleg, pod
from chronolet_schemas.envelope import Event

_RETRY_MS = RESYNC_SECONDS * 1000
_NOTHING: tuple[Event, ...] = ()


def applied(state: State, message: manifests.PodApplied, now: int) -> Sequence[Event]:
    """A source wants a pod: the life begins, its spec changes, or it awaits the end of the one before."""
    if not state.uid or (message.uid == state.uid and state.termination is None):
        if message.uid == state.uid and message.digest == state.digest:
            return _NOTHING
        accepted = acceptance.accepted(
            uid=message.uid, source=message.source, digest=message.digest, manifest=message.manifest, now=now
        )
        return (*accepted, *pull_secrets.with_spec(state, message.pod, message.uid, message.pull_secrets))
    following = Successor(
        uid=message.uid,
        source=message.source,
        digest=message.digest,
        manifest=message.manifest,
        pull_secrets=message.pull_secrets,
    )
    return (pull_secrets.awaits(state, following), *_terminate(state, "Replaced", None, now))


def withdrawn(state: State, message: manifests.PodWithdrawn, now: int) -> Sequence[Event]:
    """A source wants a pod no longer: the one that lives, or the one that awaits its end."""
    found: list[Event] = []
    if state.successor is not None and message.uid == state.successor.uid:
        found.append(pod.SuccessorAwaits(pod=state.pod, uid=state.uid, successor=None))
    if message.uid == state.uid:
        found += _terminate(state, "Deleted", message.grace_period_seconds, now)
    return found


def _terminate(state: State, reason: pod.EndReason, grace: int | None, now: int) -> Sequence[Event]:
    """The end begins, or comes sooner than it was asked for before: also for what is being stopped already."""
    asked = state.manifest.spec.termination_grace_period_seconds if grace is None else grace
    seconds = max(asked, MINIMUM_GRACE_SECONDS)
    deadline = now + seconds * 1000
    if state.termination is not None and deadline >= state.termination.deadline:
        return _NOTHING
    late = (one for one in state.containers if one.phase == "stopping" and one.stop and one.stop.deadline > deadline)
    return (
        pod.TerminationRequested(
            pod=state.pod, uid=state.uid, reason=reason, grace_period_seconds=seconds, deadline=deadline
        ),
        *(stop_requested(state, one, reason, seconds, deadline) for one in late),
    )


def answered(state: State, message: signals.Answer | EffectFailed, now: int) -> Sequence[Event]:
    """An effect answers, if it is one that is still wanted."""
    effect = next(
        (one for one in outstanding(state) if (one.subject, one.intent) == (message.subject, message.intent)), None
    )
    if effect is None:
        return _NOTHING
    if isinstance(effect, wanted.KeepSpec):
        return _spec(state, message)
    answer = _refusal(effect, message) if isinstance(message, EffectFailed) else message
    match effect:
        case wanted.StartSandbox() | wanted.StopSandbox():
            return _sandbox(state, effect, answer, now)
        case wanted.RemoveContainer():
            return _remove(state, effect, answer)
        case wanted.Cleanup():
            return _cleanup(state, answer, now)
        case _:
            return _container(state, effect, answer, now)


def _spec(state: State, answer: signals.Answer | EffectFailed) -> Sequence[Event]:
    """A spec that could not be kept is still to be kept: the kernel tries again, and each time it is said."""
    if isinstance(answer, EffectFailed):
        return (telling.not_kept(state, answer.error),)
    return (pod.SpecKept(pod=state.pod, uid=state.uid, digest=state.digest),)


def _container(
    state: State,
    effect: wanted.EnsureImage | wanted.StartContainer | wanted.StopContainer,
    answer: signals.Answer,
    now: int,
) -> Sequence[Event]:
    match effect:
        case wanted.EnsureImage():
            return _image(state, effect, answer, now)
        case wanted.StartContainer():
            return _start(state, effect, answer, now)
        case _:
            return _stop(state, effect, answer, now)


def _refusal(effect: wanted.Wanted, failed: EffectFailed) -> signals.Answer:
    """What a worker that raised, or did not end in time, has to be taken for."""
    message = f"timed out: {failed.error}" if failed.timed_out else failed.error
    to: dict[str, Any] = {"subject": effect.subject, "intent": effect.intent}
    match effect:
        case wanted.StartSandbox():
            return signals.SandboxRefused(message=message, **to)
        case wanted.EnsureImage():
            return signals.ImageRefused(reason="ErrImagePull", message=message, **to)
        case wanted.StartContainer():
            return signals.ContainerRefused(reason="CreateContainerError", message=message, **to)
        case wanted.StopContainer() | wanted.StopSandbox():
            return signals.StopRefused(message=message, **to)
        case wanted.RemoveContainer():
            return signals.RemoveRefused(message=message, **to)
        case _:
            return signals.CleanupRefused(message=message, **to)


def _sandbox(
    state: State, effect: wanted.StartSandbox | wanted.StopSandbox, answer: signals.Answer, now: int
) -> Sequence[Event]:
    who: dict[str, Any] = {"pod": state.pod, "uid": state.uid, "attempt": effect.attempt}
    match answer:
        case signals.SandboxUp():
            return (pod.SandboxStarted(id=answer.id, ip=answer.ip, started_at=answer.started_at, **who),)
        case signals.SandboxRefused():
            return (pod.SandboxStartFailed(message=answer.message, retry_at=now + _RETRY_MS, **who),)
        case signals.StopRefused():
            return (
                pod.SandboxStopFailed(id=state.sandbox.id, message=answer.message, retry_at=now + _RETRY_MS, **who),
            )
        case signals.SandboxDown():
            return sandbox_down(state, answer, now)
        case _:
            return _NOTHING


def sandbox_down(state: State, dead: signals.SandboxDown | pleg.ContainerDied, now: int) -> Sequence[Event]:
    """The sandbox at hand is dead; if nobody had heard of its start, that too.

    One that died by itself is not made anew faster than the kubelet's pod worker would.
    """
    who: dict[str, Any] = {"pod": state.pod, "uid": state.uid, "attempt": state.sandbox.attempt}
    phase, began = state.sandbox.phase, state.sandbox.started_at
    found: list[Event] = []
    if phase == "starting":
        began = dead.started_at or now
        found.append(pod.SandboxStarted(id=dead.id, started_at=began, **who))
    found.append(
        pod.SandboxExited(
            id=dead.id,
            exit_code=dead.exit_code,
            finished_at=dead.finished_at or now,
            next_at=0 if phase == "stopping" else min(began, now) + _RETRY_MS,
            **who,
        )
    )
    return found


def _image(state: State, effect: wanted.EnsureImage, answer: signals.Answer, now: int) -> Sequence[Event]:
    who: dict[str, Any] = {"pod": state.pod, "uid": state.uid, "container": effect.container, "attempt": effect.attempt}
    match answer:
        case signals.PullBegan():
            lost = (telling.secrets_lost(state, answer.lost),) if answer.lost else ()
            return (*lost, telling.pulling(state, effect.container, effect.image))
        case signals.PullProgress():
            done, total = answer.done_bytes, answer.total_bytes
            return (pod.ImagePullProgress(image=effect.image, done_bytes=done, total_bytes=total, **who),)
        case signals.ImagePresent():
            return (
                pod.ImageReady(
                    image=effect.image,
                    image_id=answer.image_id,
                    digest=answer.digest,
                    pulled=answer.pulled,
                    milliseconds=answer.milliseconds,
                    waited_milliseconds=answer.waited_milliseconds,
                    size_bytes=answer.size_bytes,
                    **who,
                ),
            )
        case signals.ImageRefused():
            one = state.container(effect.container)
            failures = one.image_failures + 1 if one else 1
            return (
                pod.ImageFailed(
                    image=effect.image,
                    reason=answer.reason,
                    message=answer.message,
                    failures=failures,
                    waits_from=now,
                    retry_at=now + image_wait_seconds(failures, answer.reason) * 1000,
                    **who,
                ),
            )
        case _:
            return _NOTHING


def _start(state: State, effect: wanted.StartContainer, answer: signals.Answer, now: int) -> Sequence[Event]:
    who: dict[str, Any] = {"pod": state.pod, "uid": state.uid, "container": effect.container, "attempt": effect.attempt}
    match answer:
        case signals.ContainerUp():
            return (pod.ContainerStarted(id=answer.id, started_at=answer.started_at or now, **who),)
        case signals.ContainerDead():
            started_at = answer.started_at or now
            return (
                pod.ContainerStarted(id=answer.id, started_at=started_at, **who),
                _exited(effect, answer, answer.id, started_at, now),
            )
        case signals.ContainerRefused():
            one = state.container(effect.container)
            failures = one.start_failures + 1 if one else 1
            wait = mount_wait_milliseconds(failures) if answer.reason == FAILED_MOUNT else _RETRY_MS
            return (
                pod.ContainerStartFailed(
                    id=answer.id,
                    reason=answer.reason,
                    message=answer.message,
                    exit_code=answer.exit_code,
                    failures=failures,
                    failed_at=now,
                    retry_at=0 if answer.id else now + wait,
                    **who,
                ),
            )
        case _:
            return _NOTHING


def _stop(state: State, effect: wanted.StopContainer, answer: signals.Answer, now: int) -> Sequence[Event]:
    match answer:
        case signals.ContainerDead():
            one = state.container(effect.container)
            started_at = one.started_at if one is not None and one.id == effect.id else 0
            return (_exited(effect, answer, effect.id, answer.started_at or started_at, now),)
        case signals.StopRefused():
            return (
                pod.ContainerStopFailed(
                    pod=state.pod,
                    uid=effect.uid,
                    container=effect.container,
                    attempt=effect.attempt,
                    id=effect.id,
                    message=answer.message,
                    retry_at=now + _RETRY_MS,
                ),
            )
        case _:
            return _NOTHING


def _exited(
    effect: wanted.StartContainer | wanted.StopContainer,
    answer: signals.ContainerDead,
    container_id: str,
    started_at: int,
    now: int,
) -> Event:
    return pod.ContainerExited(
        pod=effect.pod,
        uid=effect.uid,
        container=effect.container,
        attempt=effect.attempt,
        id=container_id,
        exit_code=answer.exit_code,
        reason=answer.reason,
        message=answer.message,
        started_at=started_at,
        finished_at=answer.finished_at or now,
    )


def _remove(state: State, effect: wanted.RemoveContainer, answer: signals.Answer) -> Sequence[Event]:
    who: dict[str, Any] = {
        "pod": state.pod,
        "uid": effect.uid,
        "container": effect.container,
        "attempt": effect.attempt,
        "id": effect.id,
    }
    match answer:
        case signals.Removed():
            return (pod.ContainerRemoved(**who),)
        case signals.RemoveRefused():
            return (pod.ContainerRemoveFailed(message=answer.message, **who),)
        case _:
            return _NOTHING


def _cleanup(state: State, answer: signals.Answer, now: int) -> Sequence[Event]:
    match answer:
        case signals.CleanedUp():
            return (pod.PodEnded(pod=state.pod, uid=state.uid),)
        case signals.CleanupRefused():
            return (pod.CleanupFailed(pod=state.pod, uid=state.uid, message=answer.message, retry_at=now + _RETRY_MS),)
        case _:
            return _NOTHING
