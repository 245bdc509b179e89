"""Tables of the events that begin a step of a pod's start, end it, or explain why it is still open. Pure.

Input: events of a pod. Output: the key of a step, and its text for users. Next: `start_steps`, which assembles steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

RESTARTS = frozenset({"SpecChanged", "SandboxGone", "FailedPostStartHook", "LivenessFailed", "StartupFailed"})
"""The reasons for which a container is stopped in order to be started again."""
_MEGABYTE = 1_000_000


class StepBegun(msgspec.Struct, frozen=True):
    """The beginning of a step: its key among the open steps, its name, and the reason for it."""

    key: str
    text: str
    note: str = ""


class StepEnded(msgspec.Struct, frozen=True):
    """The end of the step with this key."""

    key: str
    text: str = ""
    failed: bool = False


class StepNote(msgspec.Struct, frozen=True):
    """The reason why the step with this key is still open."""

    key: str
    text: str


def begun(event: Event, inits: Collection[str] = ()) -> StepBegun | None:
    """Return the step that an event begins; None if it begins none. `inits`: the init containers, for whose exit the
    pod waits.
    """
    if isinstance(event, pod.ContainerStarted):
        return (
            StepBegun(f"run/{event.container}", f"running init container {event.container}")
            if event.container in inits
            else None
        )
    found = _BEGINS.get(type(event))
    return found(event) if found else None


def ended(event: Event) -> Sequence[StepEnded]:
    """Return the steps that an event ends."""
    if isinstance(event, pod.ContainerExited):
        return StepEnded(f"stop/{event.container}"), _init_ended(event)
    found = _ENDS.get(type(event))
    return (found(event),) if found else ()


def note(event: Event) -> StepNote | None:
    """Return the reason why a step is still open; None if the event gives no reason."""
    found = _NOTES.get(type(event))
    return found(event) if found else None


def exit_words(one: pod.ContainerExited) -> str:
    """Describe an exit: `its last run ended after 2.0 s with exit code 3 (Error)`."""
    ran = max(one.finished_at - one.started_at, 0) / 1000
    return f"its last run ended after {ran:.1f} s with exit code {one.exit_code} ({one.reason})"


def _image(one: pod.ImageReady) -> StepEnded:
    key = f"image/{one.container}"
    if not one.pulled:
        return StepEnded(key, "was present")
    waited = (
        f", after {one.waited_milliseconds / 1000:.1f} s of waiting in the queue" if one.waited_milliseconds else ""
    )
    return StepEnded(key, f"pulled in {one.milliseconds / 1000:.1f} s{waited}")


def _init_ended(one: pod.ContainerExited) -> StepEnded:
    text = f"exit code {one.exit_code} ({one.reason})" if one.exit_code else ""
    return StepEnded(f"run/{one.container}", text, failed=one.exit_code != 0)


def _retry(one: pod.ContainerStartFailed) -> StepBegun | None:
    """Return the wait before a retry; None if the container counts as exited, so that RestartScheduled follows."""
    if not one.retry_at:
        return None
    why = f"{one.reason}: {one.message}"
    return StepBegun(f"wait/{one.container}", f"waiting to retry starting container {one.container}", why)


_BEGINS: Mapping[type[Event], Callable[[Any], StepBegun | None]] = {
    pod.CgroupRequested: lambda _: StepBegun("cgroup", "getting its share of the node"),
    pod.DevicesRequested: lambda one: StepBegun(
        f"devices/{one.container}", f"getting devices for container {one.container}"
    ),
    pod.PreStartRequested: lambda one: StepBegun(
        f"pre-start/{one.container}", f"notifying device plugins of container {one.container}"
    ),
    pod.SandboxStartRequested: lambda _: StepBegun("sandbox", "starting the sandbox"),
    pod.SandboxStartFailed: lambda one: StepBegun("wait", "waiting to retry starting the sandbox", one.message),
    pod.ImageEnsureRequested: lambda one: StepBegun(
        f"image/{one.container}", f"getting image {one.image} for container {one.container}"
    ),
    pod.ImageBackOffBegan: lambda one: StepBegun(
        f"wait/{one.container}", f"waiting out the back-off of image {one.image} for container {one.container}"
    ),
    pod.ContainerCreateRequested: lambda one: StepBegun(
        f"create/{one.container}", f"creating container {one.container}"
    ),
    pod.ContainerStartRequested: lambda one: StepBegun(f"start/{one.container}", f"starting container {one.container}"),
    pod.ContainerStartFailed: _retry,
    pod.HookRequested: lambda one: StepBegun(
        f"hook/{one.container}", f"running the {one.hook} hook of {one.container}"
    ),
    pod.ContainerStopRequested: lambda one: (
        StepBegun(f"stop/{one.container}", f"stopping container {one.container}", one.reason)
        if one.reason in RESTARTS
        else None
    ),
    pod.RestartScheduled: lambda one: (
        StepBegun(f"wait/{one.container}", f"waiting out the back-off of container {one.container}")
        if one.back_off_seconds
        else None
    ),
}

_ENDS: Mapping[type[Event], Callable[[Any], StepEnded]] = {
    pod.CgroupGranted: lambda _: StepEnded("cgroup"),
    pod.DevicesGranted: lambda one: StepEnded(f"devices/{one.container}"),
    pod.PreStartAllowed: lambda one: StepEnded(f"pre-start/{one.container}"),
    pod.SandboxStartRequested: lambda _: StepEnded("wait"),
    pod.SandboxStarted: lambda _: StepEnded("sandbox"),
    pod.SandboxStartFailed: lambda one: StepEnded("sandbox", f"failed: {one.message}", failed=True),
    pod.ImageReady: _image,
    pod.ImageFailed: lambda one: StepEnded(f"image/{one.container}", f"{one.reason}: {one.message}", failed=True),
    pod.ContainerCreated: lambda one: StepEnded(f"create/{one.container}"),
    # The step that starts the container reports the error.
    pod.ContainerCreateFailed: lambda one: StepEnded(f"create/{one.container}", f"failed: {one.message}"),
    pod.ContainerStarted: lambda one: StepEnded(f"start/{one.container}"),
    pod.ContainerStartFailed: lambda one: StepEnded(
        f"start/{one.container}", f"{one.reason}: {one.message}", failed=True
    ),
    pod.HookEnded: lambda one: StepEnded(f"hook/{one.container}", one.outcome),
    pod.ImageEnsureRequested: lambda one: StepEnded(f"wait/{one.container}"),
}

_NOTES: Mapping[type[Event], Callable[[Any], StepNote]] = {
    pod.DevicesAwaited: lambda one: StepNote(f"devices/{one.container}", one.message),
    pod.HostPortsAwaited: lambda one: StepNote("cgroup", one.message),
    pod.ImagePullProgress: lambda one: StepNote(
        f"image/{one.container}",
        f"{one.done_bytes / _MEGABYTE:.1f} of {one.total_bytes / _MEGABYTE:.1f} MB pulled",
    ),
}
