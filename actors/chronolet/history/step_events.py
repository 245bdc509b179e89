"""Which events begin a step of a pod's start, end it, or say why it goes on: three tables. Pure.

Comes in: events of a pod. Goes out: the key of a step, and words for people. Next: `start_steps`, which puts steps
together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

RESTARTS = frozenset({"SpecChanged", "SandboxGone", "FailedPostStartHook", "LivenessFailed", "StartupFailed"})
"""Why a container is stopped that is started again."""
_MEGABYTE = 1_000_000


class Asked(msgspec.Struct, frozen=True):
    """A step begins: its key among those that go on, its name, and why there is such a step."""

    key: str
    words: str
    note: str = ""


class Answer(msgspec.Struct, frozen=True):
    """The step of that key ends."""

    key: str
    words: str = ""
    failed: bool = False


class Note(msgspec.Struct, frozen=True):
    """The step of that key goes on, for this reason."""

    key: str
    words: str


def asked(event: Event, inits: Collection[str] = ()) -> Asked | None:
    """The step that an event begins; `inits` are the init containers, whose end the pod waits for."""
    if isinstance(event, pod.ContainerStarted):
        return (
            Asked(f"run/{event.container}", f"running init container {event.container}")
            if event.container in inits
            else None
        )
    found = _ASKS.get(type(event))
    return found(event) if found else None


def answers(event: Event) -> Sequence[Answer]:
    """The steps that an event ends."""
    if isinstance(event, pod.ContainerExited):
        return Answer(f"stop/{event.container}"), _init_ended(event)
    found = _ANSWERS.get(type(event))
    return (found(event),) if found else ()


def note(event: Event) -> Note | None:
    """Why a step goes on."""
    found = _NOTES.get(type(event))
    return found(event) if found else None


def exit_words(one: pod.ContainerExited) -> str:
    """`its last run ended after 2.0 s with exit code 3 (Error)`."""
    ran = max(one.finished_at - one.started_at, 0) / 1000
    return f"its last run ended after {ran:.1f} s with exit code {one.exit_code} ({one.reason})"


def _image(one: pod.ImageReady) -> Answer:
    key = f"image/{one.container}"
    if not one.pulled:
        return Answer(key, "was there")
    waited = (
        f", after {one.waited_milliseconds / 1000:.1f} s of waiting for its turn" if one.waited_milliseconds else ""
    )
    return Answer(key, f"pulled in {one.milliseconds / 1000:.1f} s{waited}")


def _init_ended(one: pod.ContainerExited) -> Answer:
    words = f"exit code {one.exit_code} ({one.reason})" if one.exit_code else ""
    return Answer(f"run/{one.container}", words, failed=one.exit_code != 0)


def _next_try(one: pod.ContainerStartFailed) -> Asked | None:
    """One that was made and counts as having exited is restarted: see RestartScheduled."""
    if not one.retry_at:
        return None
    why = f"{one.reason}: {one.message}"
    return Asked(f"wait/{one.container}", f"waiting for the next try to start container {one.container}", why)


_ASKS: Mapping[type[Event], Callable[[Any], Asked | None]] = {
    pod.CgroupRequested: lambda _: Asked("cgroup", "getting its share of the node"),
    pod.DevicesRequested: lambda one: Asked(
        f"devices/{one.container}", f"getting devices for container {one.container}"
    ),
    pod.PreStartRequested: lambda one: Asked(
        f"pre-start/{one.container}", f"telling device plugins of container {one.container}"
    ),
    pod.SandboxStartRequested: lambda _: Asked("sandbox", "starting the sandbox"),
    pod.SandboxStartFailed: lambda one: Asked("wait", "waiting for the next try to start the sandbox", one.message),
    pod.ImageEnsureRequested: lambda one: Asked(
        f"image/{one.container}", f"getting image {one.image} for container {one.container}"
    ),
    pod.ImageBackOffBegan: lambda one: Asked(
        f"wait/{one.container}", f"waiting out the back-off of image {one.image} for container {one.container}"
    ),
    pod.ContainerCreateRequested: lambda one: Asked(f"create/{one.container}", f"creating container {one.container}"),
    pod.ContainerStartRequested: lambda one: Asked(f"start/{one.container}", f"starting container {one.container}"),
    pod.ContainerStartFailed: _next_try,
    pod.HookRequested: lambda one: Asked(f"hook/{one.container}", f"running the {one.hook} hook of {one.container}"),
    pod.ContainerStopRequested: lambda one: (
        Asked(f"stop/{one.container}", f"stopping container {one.container}", one.reason)
        if one.reason in RESTARTS
        else None
    ),
    pod.RestartScheduled: lambda one: (
        Asked(f"wait/{one.container}", f"waiting out the back-off of container {one.container}")
        if one.back_off_seconds
        else None
    ),
}

_ANSWERS: Mapping[type[Event], Callable[[Any], Answer]] = {
    pod.CgroupGranted: lambda _: Answer("cgroup"),
    pod.DevicesGranted: lambda one: Answer(f"devices/{one.container}"),
    pod.PreStartAllowed: lambda one: Answer(f"pre-start/{one.container}"),
    pod.SandboxStartRequested: lambda _: Answer("wait"),
    pod.SandboxStarted: lambda _: Answer("sandbox"),
    pod.SandboxStartFailed: lambda one: Answer("sandbox", f"failed: {one.message}", failed=True),
    pod.ImageReady: _image,
    pod.ImageFailed: lambda one: Answer(f"image/{one.container}", f"{one.reason}: {one.message}", failed=True),
    pod.ContainerCreated: lambda one: Answer(f"create/{one.container}"),
    # The start reports what stands in the way.
    pod.ContainerCreateFailed: lambda one: Answer(f"create/{one.container}", f"failed: {one.message}"),
    pod.ContainerStarted: lambda one: Answer(f"start/{one.container}"),
    pod.ContainerStartFailed: lambda one: Answer(f"start/{one.container}", f"{one.reason}: {one.message}", failed=True),
    pod.HookEnded: lambda one: Answer(f"hook/{one.container}", one.outcome),
    pod.ImageEnsureRequested: lambda one: Answer(f"wait/{one.container}"),
}

_NOTES: Mapping[type[Event], Callable[[Any], Note]] = {
    pod.DevicesAwaited: lambda one: Note(f"devices/{one.container}", one.message),
    pod.HostPortsAwaited: lambda one: Note("cgroup", one.message),
    pod.ImagePullProgress: lambda one: Note(
        f"image/{one.container}",
        f"{one.done_bytes / _MEGABYTE:.1f} of {one.total_bytes / _MEGABYTE:.1f} MB have come",
    ),
}
