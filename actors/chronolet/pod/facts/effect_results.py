"""Derives facts from the result of a pod's effect. `plan` decides how the pod reacts to them.

Input: State, an effect's result, now. Output: events of the pod; none if the result is outdated. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chronolet.kernel.decider import Effect, EffectFailed
from chronolet.pod import signals, wanted
from chronolet.pod.outstanding import outstanding
from chronolet.pod.planning import lifecycle, probing
from chronolet.pod.planning.backoff import FAILED_MOUNT, RESYNC_SECONDS, image_wait_seconds, mount_wait_milliseconds
from chronolet.pod.state import State
from chronolet.pod.status import event_reasons
from chronolet.rules.refs import AttemptRef, EffectRef, SandboxRef
from chronolet_schemas import pleg, pod
from chronolet_schemas.envelope import Event

_RETRY_MS = RESYNC_SECONDS * 1000
_NOTHING: tuple[Event, ...] = ()
_ContainerEffect = wanted.EnsureImage | wanted.ContainerEffect | wanted.FindContainer | wanted.DiscardContainer


def answered(state: State, message: signals.EffectResult | EffectFailed, now: int) -> Sequence[Event]:
    """Return the events for an effect's result; none unless the effect is still outstanding."""
    effect = next(
        (one for one in outstanding(state) if (one.subject, one.intent) == (message.subject, message.intent)), None
    )
    if effect is None:
        return _NOTHING
    if isinstance(effect, wanted.KeepSpec):
        return _spec(state, message)
    answer = _refusal(effect, message) if isinstance(message, EffectFailed) else message
    return _HANDLERS[type(effect)](state, effect, answer, now)


def _refusal(effect: wanted.Wanted, failed: EffectFailed) -> signals.EffectResult:
    """Return the result to record when a worker raised an error or timed out."""
    message = f"timed out: {failed.error}" if failed.timed_out else failed.error
    to = EffectRef(subject=effect.subject, intent=effect.intent)
    match effect:
        case wanted.EnsureImage():
            return signals.ImageRefused(reason="ErrImagePull", message=message, **to)
        case wanted.CreateContainer() | wanted.DiscardContainer() | wanted.StartContainer() | wanted.FindContainer():
            return signals.ContainerRefused(reason="CreateContainerError", message=message, **to)
        case wanted.PrepareHook() | wanted.RunHook():
            return lifecycle.refusal(effect, message)
        case wanted.ReadExit():
            return signals.ExitRead(**to)
        case _:
            return _REFUSALS[type(effect)](message=message, **to)


def _spec(state: State, answer: signals.EffectResult | EffectFailed) -> Sequence[Event]:
    """Handle the result of storing the spec. After a failure the effect stays outstanding: the kernel retries it, and
    each failure is reported in a KubeEvent.
    """
    if isinstance(answer, EffectFailed):
        return (event_reasons.not_kept(state, answer.error),)
    return (pod.SpecKept(pod=state.pod, uid=state.uid, digest=state.digest),)


def _sandbox(
    state: State,
    effect: wanted.StartSandbox | wanted.FindSandbox | wanted.StopSandbox,
    answer: signals.EffectResult,
    now: int,
) -> Sequence[Event]:
    ref = SandboxRef(pod=state.pod, uid=state.uid, attempt=effect.attempt)
    match answer:
        case signals.SandboxMade():
            known = state.sandbox.id == answer.id
            return _NOTHING if known else (pod.SandboxCreated(id=answer.id, **ref),)
        case signals.SandboxUp():
            return (
                pod.SandboxStarted(
                    id=answer.id, ip=answer.ip, host_ip=answer.host_ip, started_at=answer.started_at, **ref
                ),
            )
        case signals.SandboxRefused():
            return (pod.SandboxStartFailed(message=answer.message, retry_at=now + _RETRY_MS, **ref),)
        case signals.StopRefused():
            return (
                pod.SandboxStopFailed(id=state.sandbox.id, message=answer.message, retry_at=now + _RETRY_MS, **ref),
            )
        case signals.SandboxDown():
            return sandbox_down(state, answer, now)
        case _:
            return _NOTHING


def sandbox_down(state: State, dead: signals.SandboxDown | pleg.ContainerDied, now: int) -> Sequence[Event]:
    """Record that the current sandbox is dead; record its start first if that was not known.

    A sandbox that died on its own is replaced no sooner than the kubelet's pod worker would replace it.
    """
    ref = SandboxRef(pod=state.pod, uid=state.uid, attempt=state.sandbox.attempt)
    phase, began = state.sandbox.phase, state.sandbox.started_at
    found: list[Event] = []
    if phase == "starting":
        began = dead.started_at or now
        found.append(pod.SandboxStarted(id=dead.id, started_at=began, **ref))
    found.append(
        pod.SandboxExited(
            id=dead.id,
            exit_code=dead.exit_code,
            finished_at=dead.finished_at or now,
            next_at=0 if phase == "stopping" else min(began, now) + _RETRY_MS,
            **ref,
        )
    )
    return found


def _image(state: State, effect: wanted.EnsureImage, answer: signals.EffectResult, now: int) -> Sequence[Event]:
    ref = _ref(state, effect)
    match answer:
        case signals.PullBegan():
            lost = (event_reasons.secrets_lost(state, answer.lost),) if answer.lost else ()
            return (*lost, event_reasons.pulling(state, effect.container, effect.image))
        case signals.PullProgress():
            done, total = answer.done_bytes, answer.total_bytes
            return (pod.ImagePullProgress(image=effect.image, done_bytes=done, total_bytes=total, **ref),)
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
                    **ref,
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
                    **ref,
                ),
            )
        case _:
            return _NOTHING


def _start(
    state: State, effect: wanted.StartContainer | wanted.FindContainer, answer: signals.EffectResult, now: int
) -> Sequence[Event]:
    ref = _ref(state, effect)
    if isinstance(effect, wanted.FindContainer) and effect.subject.startswith(wanted.CREATION):
        return _create(state, effect, answer, now)
    one = state.container(effect.container)
    match answer:
        case signals.ContainerUp():
            return (pod.ContainerStarted(id=answer.id, started_at=answer.started_at or now, **ref),)
        case signals.ContainerDead():
            started_at = answer.started_at or now
            return (
                pod.ContainerStarted(id=answer.id, started_at=started_at, **ref),
                _exited(effect, answer, answer.id, started_at, now),
            )
        case signals.ContainerRefused():
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
                    **ref,
                ),
            )
        case _:
            return _NOTHING


def _ref(state: State, effect: _ContainerEffect) -> AttemptRef:
    return AttemptRef(pod=state.pod, uid=state.uid, container=effect.container, attempt=effect.attempt)


def _create(
    state: State,
    effect: wanted.CreateContainer | wanted.DiscardContainer | wanted.FindContainer,
    answer: signals.EffectResult,
    _now: int,
) -> Sequence[Event]:
    """Handle the result of creating a container ahead of its start, or of finding or removing it. If the pod is ending
    or has failed, the clean-up removes the container.
    """
    ref = _ref(state, effect)
    if isinstance(answer, signals.ContainerMade) and isinstance(effect, wanted.CreateContainer):
        return (pod.ContainerCreated(id=answer.id, **ref),)
    message = answer.message if isinstance(answer, signals.ContainerRefused) else wanted.NOT_BEGUN
    return (pod.ContainerCreateFailed(message=message, **ref),)


def _stop(state: State, effect: wanted.StopContainer, answer: signals.EffectResult, now: int) -> Sequence[Event]:
    match answer:
        case signals.ProcessEnded() if effect.with_pod:
            return (
                pod.ContainerProcessEnded(
                    pod=state.pod, uid=effect.uid, container=effect.container, attempt=effect.attempt, id=answer.id
                ),
            )
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
    effect: wanted.StartContainer | wanted.FindContainer | wanted.StopContainer,
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


def _exit_read(state: State, effect: wanted.ReadExit, answer: signals.EffectResult, _now: int) -> Sequence[Event]:
    if not isinstance(answer, signals.ExitRead):
        return _NOTHING
    return (
        pod.ExitRead(
            pod=state.pod,
            uid=effect.uid,
            container=effect.container,
            attempt=effect.attempt,
            id=effect.id,
            message=answer.message,
            oom_killed=answer.oom_killed,
        ),
    )


def _cleanup(state: State, _effect: wanted.Cleanup, answer: signals.EffectResult, now: int) -> Sequence[Event]:
    match answer:
        case signals.CleanedUp():
            return (*probing.withdrawals(state), pod.PodEnded(pod=state.pod, uid=state.uid))
        case signals.CleanupRefused():
            return (pod.CleanupFailed(pod=state.pod, uid=state.uid, message=answer.message, retry_at=now + _RETRY_MS),)
        case _:
            return _NOTHING


_HANDLERS: Mapping[type[Effect], Callable[[State, Any, signals.EffectResult, int], Sequence[Event]]] = {
    wanted.StartSandbox: _sandbox,
    wanted.FindSandbox: _sandbox,
    wanted.StopSandbox: _sandbox,
    wanted.EnsureImage: _image,
    wanted.CreateContainer: _create,
    wanted.DiscardContainer: _create,
    wanted.StartContainer: _start,
    wanted.FindContainer: _start,
    wanted.StopContainer: _stop,
    wanted.PrepareHook: lifecycle.answered,
    wanted.RunHook: lifecycle.answered,
    wanted.ReadExit: _exit_read,
    wanted.Cleanup: _cleanup,
}

_REFUSALS: Mapping[type[Effect], Callable[..., signals.EffectResult]] = {
    wanted.StartSandbox: signals.SandboxRefused,
    wanted.FindSandbox: signals.SandboxRefused,
    wanted.StopSandbox: signals.StopRefused,
    wanted.StopContainer: signals.StopRefused,
    wanted.Cleanup: signals.CleanupRefused,
}
