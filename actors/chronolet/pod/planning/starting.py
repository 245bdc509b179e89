"""Starts and restarts one container. Pure.

Input: State, a container that `actions` wants started, now. Output: the next event of its start. Next: `plan`. Source:
pkg/kubelet/kuberuntime/kuberuntime_manager.go (SyncPod, doBackOff), kuberuntime_container.go (startContainer),
images/image_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.pod.planning.backoff import (
    CRASH_LOOP_REPORT_MS,
    IMAGE_REPORT_MS,
    KUBELET,
    PULL_FAILED,
    Limits,
    advanced,
    image_failed_milliseconds,
    next_report_at,
    wait_seconds,
)
from chronolet.pod.planning.lifecycle import handler_of
from chronolet.pod.state import Container, State
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Container as Definition
from chronolet_schemas.podspec import pull_policy

IMAGE_KNOWN_MS = 2_000
"""How long after a container's creation was requested its start may use the image that the creation found. Later,
another image with that name may have been built or pulled, which a kubelet would find."""


def advance(state: State, one: Container, now: int, limits: Limits = KUBELET) -> Iterator[Event]:
    """Yield the next step of a container towards running, regardless of other containers."""
    definition = state.definition(one.name)
    wanted = state.container_hashes.get(one.name, "")
    same_image = one.image == definition.image
    changed_while_waiting = one.phase == "backing_off" and one.spec_hash != wanted and now < one.retry_at
    if one.phase == "exited" or changed_while_waiting:
        yield _restart(state, one, wanted, now, limits)
    elif one.phase == "image_ready" and same_image and not one.being_created:
        yield _start(state, one, wanted, now)
    elif one.phase == "pulling" and same_image:
        yield from _image_found(state, one, wanted, now)
    elif one.phase == "image_failed" and one.reason in PULL_FAILED and same_image:
        # ErrImageNeverPull and InvalidImageName keep their reason: only a pull has a back-off.
        if now >= one.waits_from + image_failed_milliseconds(one.image_failures):
            yield _image_back_off(state, one, now)
    elif _may_try(one, now, same_image=same_image, same_definition=one.spec_hash == wanted):
        yield ensure_image(state, one, definition)
    elif 0 < one.tell_again_at <= now:
        yield _back_off_continued(state, one, now)


def _may_try(one: Container, now: int, *, same_image: bool, same_definition: bool) -> bool:
    """Whether the container's next attempt may begin, by looking up its image. A changed image ends a wait for the
    image, a changed definition the wait after a failed start.
    """
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


def ensure_image(state: State, one: Container, definition: Definition) -> Event:
    """Return the event that begins the next attempt by looking up its image."""
    return pod.ImageEnsureRequested(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.next_attempt,
        image=definition.image,
        policy=policy(definition),
    )


def policy(definition: Definition) -> str:
    """Return the image pull policy: Always, IfNotPresent or Never."""
    return definition.image_pull_policy or pull_policy(definition.image)


def _image_found(state: State, one: Container, spec_hash: str, now: int) -> Iterator[Event]:
    """Yield ImageReady without another look-up, if the creation of this attempt has just found the image. If only the
    image's id is known, as for an adopted container, the image is looked up again.
    """
    made = one.ahead
    if made is None or not made.id or made.outdated or one.waited_seconds or one.policy == "Always":
        return
    if not one.image_digest and not one.image_size_bytes:
        return
    fits = made.sandbox_id == state.sandbox.id and (made.image, made.spec_hash) == (one.image, spec_hash)
    if fits and 0 <= now - made.requested_at <= IMAGE_KNOWN_MS:
        yield pod.ImageReady(
            pod=state.pod,
            uid=state.uid,
            container=one.name,
            attempt=one.attempt,
            image=one.image,
            image_id=made.image_id,
            digest=one.image_digest,
            pulled=False,
            size_bytes=one.image_size_bytes,
        )


def _image_back_off(state: State, one: Container, now: int) -> Event:
    return pod.ImageBackOffBegan(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        image=one.image,
        retry_at=one.retry_at,
        tell_again_at=next_report_at(now, one.retry_at, IMAGE_REPORT_MS),
    )


def _back_off_continued(state: State, one: Container, now: int) -> Event:
    """Report again that the container waits for its restart or for the retry of its image."""
    pause = CRASH_LOOP_REPORT_MS if one.phase == "backing_off" else IMAGE_REPORT_MS
    return pod.BackOffContinued(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        tell_again_at=next_report_at(now, one.retry_at, pause),
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
        post_start=handler_of(state, one.name, "PostStart"),
    )


def _restart(state: State, one: Container, spec_hash: str, now: int, limits: Limits) -> Event:
    """Schedule the restart. The wait is counted from the end of the last run; a new definition resets the back-off."""
    back_off = one.back_off if one.spec_hash == spec_hash else None
    finished_at = _finished_at(one, now)
    waited = wait_seconds(back_off, finished_at, limits)
    at = max(finished_at + waited * 1000, now)
    return pod.RestartScheduled(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        at=at,
        back_off_seconds=waited if at > now else 0,
        next_back_off_seconds=advanced(back_off, finished_at, at, limits).seconds,
        tell_again_at=next_report_at(now, at, CRASH_LOOP_REPORT_MS),
    )


def _finished_at(one: Container, now: int) -> int:
    """Return when the last run ended, in the kernel's time.

    The kernel's time never goes back, but the runtime's follows the machine's clock: an end in the future, or before
    the restart that began the run, counts as `now`.
    """
    restarted_at = one.back_off.updated_at if one.back_off else 0
    if one.exit is None or not max(restarted_at, 1) <= one.exit.finished_at <= now:
        return now
    return one.exit.finished_at
