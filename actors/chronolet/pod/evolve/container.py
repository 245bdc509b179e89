"""Folds the events of one container into its state. Validates nothing and cannot fail.

Input: a Container and an event about it. Output: the next Container. Next: `evolve`, for the whole pod. The transition
table is in `phases`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from chronolet.pod.planning.probing import with_request, with_result, with_skip, without
from chronolet.pod.state import POST_START_ERROR, Ahead, BackOff, Container, Exit, Hook, Stop
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

_Part = TypeVar("_Part", bound=msgspec.Struct)
_NO_WAIT: dict[str, int] = {"waits_from": 0, "retry_at": 0, "tell_again_at": 0}
_NO_REASON: dict[str, str | int] = {"reason": "", "message": "", **_NO_WAIT}
"""Field values that clear a wait and its reason. A reason is shown until the container runs or has another reason (as
with the kubelet's reason cache)."""


def evolve_container(one: Container, event: pod.ContainerEvent) -> Container:
    """Return the container after an event about it; events that are not in `_CHANGES` are ignored."""
    change = _CHANGES.get(type(event))
    return change(one, event) if change else one


def _pulling(one: Container, event: pod.ImageEnsureRequested) -> Container:
    return replace(
        one,
        phase="pulling",
        attempt=event.attempt,
        image=event.image,
        policy=event.policy,
        image_failures=one.image_failures if event.image == one.image else 0,
        id="",
        ahead=one.ahead if one.ahead is not None and one.ahead.attempt == event.attempt else None,
        **_NO_WAIT,
    )


def _image_ready(one: Container, event: pod.ImageReady) -> Container:
    return replace(
        one,
        phase="image_ready",
        image_id=event.image_id,
        image_digest=event.digest,
        image_size_bytes=event.size_bytes,
        image_failures=0,
        **_NO_WAIT,
    )


def _image_failed(one: Container, event: pod.ImageFailed) -> Container:
    return _waiting(one, event, event.waits_from, phase="image_failed", image_failures=event.failures)


def _creating(one: Container, event: pod.ContainerCreateRequested) -> Container:
    ahead = Ahead(
        attempt=event.attempt,
        sandbox_id=event.sandbox_id,
        spec_hash=event.spec_hash,
        image_id=event.image_id,
        image=event.image,
        requested_at=event.requested_at,
    )
    return replace(one, ahead=ahead)


def _created(one: Container, event: pod.ContainerCreated) -> Container:
    return replace(one, ahead=_changed(one.ahead, id=event.id))


def _not_created(one: Container, _event: pod.ContainerCreateFailed) -> Container:
    return replace(one, ahead=_changed(one.ahead, id="", failed=True))


def for_sandbox(one: Container, sandbox_id: str) -> Container:
    """Return the container, with its creation marked as outdated if it was made for a sandbox other than `sandbox_id`
    (empty: no sandbox). A failed creation is not marked, nor one that a start in progress uses: the result of the start
    decides.
    """
    if one.ahead is None or one.ahead.failed or one.ahead.sandbox_id == sandbox_id:
        return one
    if one.phase == "starting" and one.ahead.attempt == one.attempt:
        return one
    return replace(one, ahead=replace(one.ahead, outdated=True))


def _started(one: Container, event: pod.ContainerStarted) -> Container:
    back_off = (
        replace(one.back_off, updated_at=max(one.back_off.updated_at, event.started_at)) if one.back_off else None
    )
    return replace(
        one,
        phase="running",
        attempt=event.attempt,
        id=event.id,
        ahead=one.ahead if one.being_created else None,
        started_at=event.started_at,
        start_failures=0,
        stop=None,
        hook=None,
        back_off=back_off,
        **_NO_REASON,
    )


def _start_failed(one: Container, event: pod.ContainerStartFailed) -> Container:
    if not event.id:
        return _waiting(one, event, event.failed_at, phase="start_failed", ahead=None, start_failures=event.failures)
    ended = _exit(one, event, reason="ContainerCannotRun", finished_at=event.failed_at, read=True)
    return replace(
        one,
        phase="exited",
        id=event.id,
        ahead=None,
        start_failures=0,
        reason=event.reason,
        message=event.message,
        exit=ended,
        stop=None,
    )


def _waiting(
    one: Container, event: pod.ImageFailed | pod.ContainerStartFailed, waits_from: int, **changes: Any
) -> Container:
    """Return the container as it waits for its next attempt at a pull or a start."""
    return replace(
        one, waits_from=waits_from, retry_at=event.retry_at, reason=event.reason, message=event.message, **changes
    )


def _exit(
    one: Container,
    event: pod.ContainerStartFailed | pod.ContainerExited,
    *,
    reason: str,
    finished_at: int,
    started_at: int = 0,
    read: bool = False,
) -> Exit:
    """Return the exit of the container's current attempt."""
    return Exit(
        attempt=event.attempt,
        id=event.id,
        sandbox_id=one.sandbox_id,
        exit_code=event.exit_code,
        reason=reason,
        message=event.message,
        started_at=started_at,
        finished_at=finished_at,
        read=read,
    )


def _exited(one: Container, event: pod.ContainerExited) -> Container:
    ended = _exit(one, event, reason=event.reason, started_at=event.started_at, finished_at=event.finished_at)
    why = _NO_WAIT if one.reason == POST_START_ERROR else _NO_REASON
    return replace(one, phase="exited", id=event.id, exit=ended, post_start=None, hook=None, **why)


def _exit_read(one: Container, event: pod.ExitRead) -> Container:
    if one.exit is None or one.exit.id != event.id:
        return one
    reason = "OOMKilled" if event.oom_killed else one.exit.reason
    return replace(one, exit=replace(one.exit, read=True, reason=reason, message=event.message or one.exit.message))


def _image_back_off(one: Container, event: pod.ImageBackOffBegan) -> Container:
    text = f'Back-off pulling image "{event.image}": {one.reason}: {one.message}'
    return replace(
        one,
        phase="image_back_off",
        reason="ImagePullBackOff",
        message=text,
        retry_at=event.retry_at,
        tell_again_at=event.tell_again_at,
    )


def _blocked(one: Container, event: pod.ContainerBlocked) -> Container:
    return replace(one, blocked=event.message)


def _starting(one: Container, event: pod.ContainerStartRequested) -> Container:
    return replace(
        one,
        phase="starting",
        spec_hash=event.spec_hash,
        requested_at=event.requested_at,
        id="",
        sandbox_id=event.sandbox_id,
        post_start=event.post_start,
        **_NO_WAIT,
    )


def _backing_off(one: Container, event: pod.RestartScheduled) -> Container:
    return replace(
        one,
        phase="backing_off",
        retry_at=event.at,
        tell_again_at=event.tell_again_at,
        waited_seconds=event.back_off_seconds,
        reason="CrashLoopBackOff" if event.back_off_seconds else one.reason,
        back_off=BackOff(seconds=event.next_back_off_seconds, updated_at=event.at),
    )


def _stopping(one: Container, event: pod.ContainerStopRequested) -> Container:
    # A stop cancels the postStart hook.
    hook = one.hook if one.hook and one.hook.hook == "PreStop" else None
    return replace(one, phase="stopping", post_start=None, hook=hook, stop=stop_of(event, one.stop))


def _released(one: Container, event: pod.ContainerStopReleased) -> Container:
    return replace(one, stop=_changed(one.stop, held=False, deadline=event.deadline))


def _hook_requested(one: Container, event: pod.HookRequested) -> Container:
    hook = Hook(hook=event.hook, handler=event.handler, requested_at=event.requested_at)
    return replace(one, hook=hook, post_start=None, stop=_changed(one.stop, pre_stop=None))


def _hook_prepared(one: Container, event: pod.HookPrepared) -> Container:
    return replace(one, hook=_changed(one.hook, exec_id=event.exec_id))


def _hook_ended(one: Container, event: pod.HookEnded) -> Container:
    if event.hook == "PostStart" and event.outcome in ("Failed", "Unfinished"):
        return replace(one, hook=None, reason=POST_START_ERROR, message=event.message)
    return replace(one, hook=None)


def _stop_failed(one: Container, event: pod.ContainerStopFailed) -> Container:
    return replace(one, stop=refused(one.stop, event))


def _process_ended(one: Container, _event: pod.ContainerProcessEnded) -> Container:
    return replace(one, stop=_changed(one.stop, process_ended=True))


def _changed(part: _Part | None, **fields: Any) -> _Part | None:
    return None if part is None else replace(part, **fields)


def stop_of(event: pod.ContainerStopRequested, before: Stop | None) -> Stop:
    """Return the requested stop. A repeated request keeps what is known from the previous one, `before`: the number of
    refusals, whether it is held, its preStop hook, and whether the process has ended.
    """
    return Stop(
        grace_period_seconds=event.grace_period_seconds,
        deadline=event.deadline,
        reason=event.reason,
        tries=before.tries if before else 0,
        held=before.held if before else event.held,
        pre_stop=before.pre_stop if before else event.pre_stop,
        process_ended=before.process_ended if before else False,
    )


def refused(stop: Stop | None, event: pod.ContainerStopFailed) -> Stop | None:
    """Return the stop, updated after a refusal by the runtime."""
    return replace(stop, tries=stop.tries + 1, retry_at=event.retry_at) if stop else None


_CHANGES: Mapping[type[Event], Callable[[Container, Any], Container]] = {
    pod.ImageEnsureRequested: _pulling,
    pod.ImageReady: _image_ready,
    pod.ImageFailed: _image_failed,
    pod.ImageBackOffBegan: _image_back_off,
    pod.ContainerBlocked: _blocked,
    pod.ContainerCreateRequested: _creating,
    pod.ContainerCreated: _created,
    pod.ContainerCreateFailed: _not_created,
    pod.ContainerStartRequested: _starting,
    pod.ContainerStarted: _started,
    pod.ContainerStartFailed: _start_failed,
    pod.ContainerExited: _exited,
    pod.RestartScheduled: _backing_off,
    pod.BackOffContinued: lambda one, event: replace(one, tell_again_at=event.tell_again_at),
    pod.ContainerStopRequested: _stopping,
    pod.ContainerStopReleased: _released,
    pod.HookRequested: _hook_requested,
    pod.HookPrepared: _hook_prepared,
    pod.HookEnded: _hook_ended,
    pod.ExitRead: _exit_read,
    pod.ContainerStopFailed: _stop_failed,
    pod.ContainerProcessEnded: _process_ended,
    pod.ProbingRequested: lambda one, event: replace(one, probing=with_request(one.probing, event)),
    pod.ProbingSkipped: lambda one, event: replace(one, probing=with_skip(one.probing, event)),
    pod.ProbingWithdrawn: lambda one, event: replace(one, probing=without(one.probing, event.probe)),
    pod.ContainerProbed: lambda one, event: replace(one, probing=with_result(one.probing, event)),
}
