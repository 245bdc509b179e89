"""Lists what was recorded about a container or pod, with the time between the steps. Pure.

Input: facts. Output: `Step`s. Next: `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from chronolet.history.why.facts import Fact
from chronolet.history.why.wording import named, quoted, requester
from chronolet_schemas import container_gc, devices, image_gc, manifests, pleg, pod, prober


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a timeline. `at` is in milliseconds since the epoch, `after` the milliseconds since the line before,
    `position` the entry of the log.
    """

    at: int
    position: str
    text: str
    after: int = 0


def timeline(facts: Iterable[Fact]) -> tuple[Step, ...]:
    """Return a step for each fact that has words, in log order."""
    steps: list[Step] = []
    for fact in sorted(facts, key=lambda one: one.position):
        found = _WORDS.get(type(fact.event))
        if found is not None:
            after = max(fact.at - steps[-1].at, 0) if steps else 0
            steps.append(Step(at=fact.at, position=str(fact.position), text=found(fact.event), after=after))
    return tuple(steps)


def _sent(event: pleg.ContainerDied) -> str:
    if event.sent is None:
        return "Docker was asked afterwards"
    return f"Docker sent {', '.join(map(named, event.sent))}" if event.sent else "Docker sent no signal"


def _stop(event: pod.ContainerStopRequested) -> str:
    held = ", after its preStop hook or other containers" if event.held else ""
    return f"stop of {event.container} requested: {event.reason}, grace period {event.grace_period_seconds} s{held}"


def _probe(event: prober.ProbeFailed) -> str:
    code = f", code {event.code}" if event.code is not None else ""
    said = f", {quoted(event.output)}" if event.output.strip() else ""
    return f"{event.probe.lower()} probe of {event.container} failed {event.consecutive}/{event.threshold}{code}{said}"


def _back_off(event: pod.RestartScheduled) -> str:
    wait = f"after a back-off of {event.back_off_seconds} s" if event.back_off_seconds else "at once"
    return f"restart of {event.container} decided, {wait}"


def _image(event: pod.ImageReady) -> str:
    return f"image {event.image} {'pulled' if event.pulled else 'present'}"


def _followed(event: pleg.StreamFollowed) -> str:
    return "Docker's notices followed" + (": the agent started" if event.first else " again")


_WORDS: Mapping[type[Any], Callable[[Any], str]] = {
    manifests.PodApplied: lambda one: f"requested by {requester(one.source)}",
    manifests.PodWithdrawn: lambda one: f"no longer requested by {requester(one.source)}",
    manifests.PodRefused: lambda one: f"request of {requester(one.source)} refused: {one.reason}",
    pod.SpecAccepted: lambda one: f"spec accepted, from {requester(one.source)}",
    pod.PodAdopted: lambda _: "found running when the log began, or had lost its end",
    pod.SuccessorAwaits: lambda _: "another pod of this name is requested",
    pod.TerminationRequested: lambda one: f"end of the pod begun: {one.reason}, {one.grace_period_seconds} s",
    pod.PodFailed: lambda one: f"pod failed: {one.reason}: {one.message}",
    pod.PodEnded: lambda _: "everything of the pod removed",
    pod.CleanupFailed: lambda one: f"removal failed: {one.message}",
    pod.SandboxBlocked: lambda one: f"sandbox refused: {one.message}",
    pod.SandboxStarted: lambda one: f"sandbox started (attempt {one.attempt})",
    pod.SandboxStartFailed: lambda one: f"sandbox not started: {one.message}",
    pod.SandboxStopRequested: lambda _: "stop of the sandbox requested",
    pod.SandboxExited: lambda one: f"sandbox ended with exit code {one.exit_code}",
    pod.HostPortsAwaited: lambda one: f"waiting for a port: {one.message}",
    pod.DevicesAwaited: lambda one: f"waiting for devices of {one.container}: {one.message}",
    pod.DevicesGranted: lambda one: f"devices of {one.container} granted",
    pod.ContainerBlocked: lambda one: f"{one.container} refused: {one.reason}: {one.message}",
    pod.ImageReady: _image,
    pod.ImageFailed: lambda one: f"image {one.image} not available: {one.reason}: {one.message}",
    pod.ContainerStarted: lambda one: f"container {one.container} started (attempt {one.attempt})",
    pod.ContainerStartFailed: lambda one: f"container {one.container} not started: {one.reason}: {one.message}",
    pod.ContainerStopRequested: _stop,
    pod.ContainerStopReleased: lambda one: f"stop of {one.container} continued: its stop signal may be sent",
    pod.ContainerStopFailed: lambda one: f"stop of {one.container} refused by Docker: {one.message}",
    pod.ContainerExited: lambda one: f"container {one.container} ended: exit code {one.exit_code} ({one.reason})",
    pod.ExitRead: lambda one: f"OOM kill found in {one.container}" if one.oom_killed else "termination message read",
    pod.RestartScheduled: _back_off,
    pod.StrayFound: lambda one: f"{one.container} was started by something else: attempt {one.attempt}",
    pod.HookRequested: lambda one: f"{one.hook} hook of {one.container} requested",
    pod.HookEnded: lambda one: f"{one.hook} hook of {one.container}: {one.outcome}",
    prober.ProbeFailed: _probe,
    prober.ProbeErrored: lambda one: f"{one.probe.lower()} probe of {one.container} could not be made",
    prober.ProbeUnjudged: lambda one: f"{one.probe.lower()} probe of {one.container} timed out on a stalled machine",
    prober.ResultChanged: lambda one: f"result of the {one.probe.lower()} probe of {one.container}: {one.result}",
    pleg.ContainerDied: lambda one: f"Docker: {one.container} died, exit code {one.exit_code}; {_sent(one)}",
    pleg.OutOfMemory: lambda one: f"the kernel killed a process of {one.container} for lack of memory",
    pleg.ContainerRemoved: lambda one: f"Docker: container of {one.container} removed",
    pleg.ProbeKillHeld: lambda one: f"stop of {one.container} held back: the machine is overloaded",
    pleg.ProbeKillReleased: lambda one: f"stop of {one.container} no longer held back",
    pleg.ProbeKillDropped: lambda one: f"held stop of {one.container} dropped",
    pleg.StreamLost: lambda one: f"Docker Engine lost: {one.error}",
    pleg.StreamFollowed: _followed,
    container_gc.Removed: lambda one: f"container collection removed {one.name} (rule {one.rule.replace('_', ' ')})",
    devices.PluginStopped: lambda one: f"device plugin of {one.resource} ended",
    devices.PluginRegistered: lambda one: f"device plugin of {one.resource} registered",
    image_gc.ImageRemoved: lambda one: f"image collection removed {one.name} ({one.reason})",
}
"""Events that have no words here add nothing that a person needs; `chronolet log --pod` has all."""
