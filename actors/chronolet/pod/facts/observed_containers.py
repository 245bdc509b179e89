"""Turns the container starts and exits that pleg observed into facts of the pod. Pure.

Input: State, `pleg.ContainerStarted` or `pleg.ContainerDied`, now. Output: events of the pod; none if the observation
is already known or outdated. Next: `decider`.

The current attempt of a container of this uid belongs to the pod, and its latest dead attempt is known. Any other
container that is running under the pod's name is a stray and is stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.pod.facts.effect_results import sandbox_down
from chronolet.pod.planning.starting import ensure_image
from chronolet.pod.state import SANDBOX, STATUS_UNKNOWN, Container, Exit, State
from chronolet.rules.refs import ContainerRef
from chronolet_schemas import pleg, pod
from chronolet_schemas.envelope import Event

_NOTHING: tuple[Event, ...] = ()
_SAME_START_MS = 1000
"""The largest difference between a notice's time and an inspect's start time that still counts as the same start."""
_UNKNOWN_EXIT = "the container could not be located: its real exit status is unknown, the exit code is a placeholder"
"""The kubelet's message also contains `could not be located`, and its exit code is 137, as for a kill."""


def started(state: State, message: pleg.ContainerStarted) -> Sequence[Event]:
    """Return the events for a container that is running."""
    if state.stray(message.id) or _is_outdated(state, message):
        return _NOTHING
    if message.container == SANDBOX:
        return _sandbox_started(state, message) if _own_sandbox(state, message) else _stray_found(state, message)
    one = state.container(message.container) if message.uid == state.uid else None
    return _container_started(state, one, message) if one is not None else _stray_found(state, message)


def _is_outdated(state: State, message: pleg.ContainerStarted) -> bool:
    """Whether the notice is about an attempt of a container that was dead before the current one was requested.

    Not so for sandboxes: they rarely die, and one that something started again must not be left running.
    """
    if message.uid != state.uid or message.container == SANDBOX:
        return False
    newest = state.container(message.container)
    return newest is not None and message.attempt < newest.attempt and _is_of_earlier_life(message, newest.requested_at)


def _container_started(state: State, one: Container, message: pleg.ContainerStarted) -> Sequence[Event]:
    if one.phase == "starting" and one.attempt == message.attempt:
        # The effect that starts the container replaces a half-restored one, which has no start time.
        known = message.started_at and not _is_of_earlier_life(message, one.requested_at)
        return (_started(state, message),) if known else _NOTHING
    if one.alive and one.id == message.id:
        return _NOTHING
    if one.exit is not None and one.exit.id == message.id:
        return _started_again(state, one, message)
    if not one.alive and message.attempt == one.next_attempt and not state.over:
        # The agent started it, but the log has lost that event: the next start finds it by name.
        return _container_found(state, one, message)
    return _stray_found(state, message)


def _container_found(state: State, one: Container, message: pleg.ContainerStarted) -> Sequence[Event]:
    """Retry without delay a start that was recorded as failed although it had succeeded: the next start finds the
    container.
    """
    same = one.phase == "start_failed" and one.attempt == message.attempt and not one.blocked
    if same and one.spec_hash == state.container_hashes.get(one.name) and state.sandbox.phase == "running":
        return (ensure_image(state, one, state.definition(one.name)),)
    return _NOTHING


def _sandbox_started(state: State, message: pleg.ContainerStarted) -> Sequence[Event]:
    """Request the sandbox's start again, without delay, if the start that was recorded as failed had succeeded after
    all. A dead sandbox that runs again is a stray: the next attempt replaces it. It was started by a user, or by a call
    that was still in progress when its first run ended.

    In other phases the effect that starts the sandbox reports it, because it also knows the address.
    """
    sandbox = state.sandbox
    if sandbox.phase == "dead":
        # A snapshot of a former release has no time of exit.
        after = 0 < sandbox.finished_at < message.started_at
        again = after or not _is_same_start(sandbox.started_at, message.started_at)
        return _stray_found(state, message) if again else _NOTHING
    if sandbox.phase != "failed" or sandbox.spec_hash != state.sandbox_hash or sandbox.blocked or state.over:
        return _NOTHING
    return (
        pod.SandboxStartRequested(
            pod=state.pod,
            uid=state.uid,
            attempt=sandbox.attempt,
            spec_hash=sandbox.spec_hash,
            requested_at=sandbox.requested_at,
        ),
    )


def died(state: State, message: pleg.ContainerDied, now: int) -> Sequence[Event]:
    """Return the events for a dead container. An exit implies a start, which is recorded first if it was not known."""
    if state.stray(message.id):
        return (_exited(state, message, now),)
    if message.container == SANDBOX:
        return _sandbox_died(state, message, now)
    one = state.container(message.container) if message.uid == state.uid else None
    if one is None:
        return _NOTHING
    if one.phase in ("running", "stopping") and one.id == message.id:
        return (_exited(state, message, now),)
    # A container that never ran (no start time) is reported by the start effect, which knows the reason.
    ran = message.started_at and not _is_of_earlier_life(message, one.requested_at)
    if one.phase == "starting" and one.attempt == message.attempt and ran:
        return (_started(state, message), _exited(state, message, now))
    return _NOTHING


def _is_of_earlier_life(message: pleg.ContainerStarted | pleg.ContainerDied, requested_at: int) -> bool:
    """Whether the message is about an earlier life under the same uid, whose attempts had the same numbers."""
    return 0 < message.started_at < requested_at


def _own_sandbox(state: State, message: pleg.ContainerStarted) -> bool:
    """Whether the message is about the pod's current sandbox.

    An engine that was killed while it created a sandbox may have two with the same attempt number: the other one is a
    stray.
    """
    sandbox = state.sandbox
    if message.uid != state.uid or message.attempt != sandbox.attempt or sandbox.phase == "absent":
        return False
    return sandbox.phase in ("starting", "failed") or sandbox.id == message.id


def _sandbox_died(state: State, message: pleg.ContainerDied, now: int) -> Sequence[Event]:
    sandbox = state.sandbox
    if message.uid != state.uid or message.attempt != sandbox.attempt:
        return _NOTHING
    known = sandbox.phase in ("running", "stopping") and sandbox.id == message.id
    # A sandbox that never ran may be left over from an earlier start; the start in progress replaces it.
    ran = message.started_at and not _is_of_earlier_life(message, sandbox.requested_at)
    if known or (sandbox.phase == "starting" and ran):
        return sandbox_down(state, message, now)
    return _NOTHING


def _started_again(state: State, one: Container, message: pleg.ContainerStarted) -> Sequence[Event]:
    """Handle a start of the latest dead container: the notice is outdated, or something else started the container
    again.

    A run is identified by its container and its start time. Another start time means another run, even if the clock was
    set back after the known end. `pleg` reports each start once, but may take its time from a notice, which may be
    slightly later.
    """
    if one.exit is None or _same_run(one.exit, message.started_at):
        return _NOTHING
    if one.phase in ("exited", "backing_off"):
        return (_started(state, message),)
    return _stray_found(state, message)


def _same_run(known: Exit, started_at: int) -> bool:
    if not known.started_at:
        return started_at <= known.finished_at
    return _is_same_start(known.started_at, started_at)


def _is_same_start(known: int, started_at: int) -> bool:
    return abs(started_at - known) <= _SAME_START_MS


def _stray_found(state: State, message: pleg.ContainerStarted) -> Sequence[Event]:
    return (
        pod.StrayFound(
            pod=state.pod, uid=message.uid, container=message.container, attempt=message.attempt, id=message.id
        ),
    )


def _ref(state: State, message: pleg.ContainerEvent) -> ContainerRef:
    return ContainerRef(
        pod=state.pod, uid=message.uid, container=message.container, attempt=message.attempt, id=message.id
    )


def _started(state: State, message: pleg.ContainerStarted | pleg.ContainerDied) -> Event:
    return pod.ContainerStarted(started_at=message.started_at, **_ref(state, message))


def _exited(state: State, message: pleg.ContainerDied, now: int) -> Event:
    one = state.container(message.container)
    started_at = one.started_at if one is not None and one.id == message.id else now
    return pod.ContainerExited(
        exit_code=message.exit_code,
        reason=message.reason,
        message=_UNKNOWN_EXIT if message.reason == STATUS_UNKNOWN else "",
        started_at=message.started_at or started_at,
        finished_at=message.finished_at or now,
        **_ref(state, message),
    )
