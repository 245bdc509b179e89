"""What pleg says about a pod's containers, as facts of the pod. Pure.

Comes in: State, `pleg.ContainerStarted` or `pleg.ContainerDied`, now. Goes out: events of the pod; none for what is
known already, or older than what is known. Next: `decider`.

Who is who: the current attempt of a container of this uid is the pod's own; the last dead one is known; anything else
that runs under the pod's name is a stray and is stopped (DESIGN 5, "Whose truth").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronolet.pod.answers import sandbox_down
from chronolet.pod.planning.starting import ensure_image
from chronolet.pod.state import SANDBOX, STATUS_UNKNOWN, Container, Exit, State
from chronolet_schemas import pleg, pod
from chronolet_schemas.envelope import Event

_NOTHING: tuple[Event, ...] = ()
_SAME_START_MS = 1000
"""A notice's time and the start time of an inspect are about the same start when they are no further apart."""
_UNKNOWN_EXIT = "the container could not be located: how it ended is not known, the exit code only stands for that"
"""The kubelet says `could not be located`, and shows 137, as for a kill."""


def started(state: State, message: pleg.ContainerStarted) -> Sequence[Event]:
    """A container runs."""
    if state.stray(message.id) or _long_dead(state, message):
        return _NOTHING
    if message.container == SANDBOX:
        return _sandbox_started(state) if _own_sandbox(state, message) else _superseded(state, message)
    one = state.container(message.container) if message.uid == state.uid else None
    return _container_started(state, one, message) if one is not None else _superseded(state, message)


def _long_dead(state: State, message: pleg.ContainerStarted) -> bool:
    """Late news of an attempt that was dead before the one at hand was asked for."""
    if message.uid != state.uid:
        return False
    newest = state.sandbox if message.container == SANDBOX else state.container(message.container)
    return newest is not None and message.attempt < newest.attempt and _before(message, newest.requested_at)


def _container_started(state: State, one: Container, message: pleg.ContainerStarted) -> Sequence[Event]:
    if one.phase == "starting" and one.attempt == message.attempt:
        return _NOTHING if _before(message, one.requested_at) else (_started(state, message),)
    if one.alive and one.id == message.id:
        return _NOTHING
    if one.exit is not None and one.exit.id == message.id:
        return _again(state, one, message)
    if not one.alive and message.attempt == one.next_attempt and not state.over:
        # Started by us, and the log lost its end, or all of it, under us: the start that comes next finds it by name.
        return _container_found(state, one, message)
    return _superseded(state, message)


def _container_found(state: State, one: Container, message: pleg.ContainerStarted) -> Sequence[Event]:
    """A start that seemed to have failed worked: the next one, which finds that out, waits no longer."""
    same = one.phase == "start_failed" and one.attempt == message.attempt and not one.blocked
    if same and one.spec_hash == state.container_hashes.get(one.name) and state.sandbox.phase == "running":
        return (ensure_image(state, one, state.definition(one.name)),)
    return _NOTHING


def _sandbox_started(state: State) -> Sequence[Event]:
    """Likewise. Otherwise its start is told by the effect, which knows the address too."""
    sandbox = state.sandbox
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
    """A container is dead: died implies started."""
    if state.stray(message.id):
        return (_exited(state, message, now),)
    if message.container == SANDBOX:
        return _sandbox_died(state, message, now)
    one = state.container(message.container) if message.uid == state.uid else None
    if one is None:
        return _NOTHING
    if one.phase in ("running", "stopping") and one.id == message.id:
        return (_exited(state, message, now),)
    # What never ran (no start time) is the start effect's to tell: it knows why.
    ran = message.started_at and not _before(message, one.requested_at)
    if one.phase == "starting" and one.attempt == message.attempt and ran:
        return (_started(state, message), _exited(state, message, now))
    return _NOTHING


def _before(message: pleg.ContainerStarted | pleg.ContainerDied, requested_at: int) -> bool:
    """About an earlier life under the same uid, whose attempts had the same numbers."""
    return 0 < message.started_at < requested_at


def _own_sandbox(state: State, message: pleg.ContainerStarted) -> bool:
    """The sandbox at hand.

    An engine that was killed while it made one may have two of one attempt afterwards: the other one is a stray.
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
    # One that never ran may be an earlier try's, which gives way to the one that is being made.
    ran = message.started_at and not _before(message, sandbox.requested_at)
    if known or (sandbox.phase == "starting" and ran):
        return sandbox_down(state, message, now)
    return _NOTHING


def _again(state: State, one: Container, message: pleg.ContainerStarted) -> Sequence[Event]:
    """The last dead container runs: old news, or somebody else started it again.

    A run is known by its container and its start. What started at another time is another run, also where the clock was
    set back since the known end. `pleg` tells of each start once, but by a notice, whose time may be a little later.
    """
    if one.exit is None or _same_run(one.exit, message.started_at):
        return _NOTHING
    if one.phase in ("exited", "backing_off"):
        return (_started(state, message),)
    return _superseded(state, message)


def _same_run(known: Exit, started_at: int) -> bool:
    if not known.started_at:
        return started_at <= known.finished_at
    return abs(started_at - known.started_at) <= _SAME_START_MS


def _superseded(state: State, message: pleg.ContainerStarted) -> Sequence[Event]:
    return (
        pod.StrayFound(
            pod=state.pod, uid=message.uid, container=message.container, attempt=message.attempt, id=message.id
        ),
    )


def _who(state: State, message: pleg.ContainerEvent) -> dict[str, Any]:
    return {
        "pod": state.pod,
        "uid": message.uid,
        "container": message.container,
        "attempt": message.attempt,
        "id": message.id,
    }


def _started(state: State, message: pleg.ContainerStarted | pleg.ContainerDied) -> Event:
    return pod.ContainerStarted(started_at=message.started_at, **_who(state, message))


def _exited(state: State, message: pleg.ContainerDied, now: int) -> Event:
    one = state.container(message.container)
    started_at = one.started_at if one is not None and one.id == message.id else now
    return pod.ContainerExited(
        exit_code=message.exit_code,
        reason=message.reason,
        message=_UNKNOWN_EXIT if message.reason == STATUS_UNKNOWN else "",
        started_at=message.started_at or started_at,
        finished_at=message.finished_at or now,
        **_who(state, message),
    )
