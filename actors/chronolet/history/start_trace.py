"""Where the time of a pod's start went: its steps by the log, the waits and calls within each by recent spans. Pure.

Comes in: the pod's log entries, spans, results of its probes, now. Goes out: `Trace`. Next: `cli.trace` prints it.

A step begins with the event that asks for it and ends with the one that answers. Steps may overlap: a container is
created while its sandbox starts. The culprit is what took longest: of the start, or a probe that began late after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from chronolet.ports.spans import TURN, Span
from chronolet_schemas import codec, pod
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.prober import RawResult

LATE_MILLISECONDS = 1000.0
"""A probe that began so much after its time is worth naming."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a start: milliseconds since the epoch; `ended` 0 while it goes on. `note` says how it ended."""

    name: str
    began: int
    ended: int = 0
    note: str = ""
    spans: tuple[Span, ...] = ()

    def milliseconds(self, now: int) -> int:
        """How long it took, or has taken so far."""
        return (self.ended or now) - self.began


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a pod. `culprit` is one sentence about what took longest."""

    pod: str
    began: int
    ended: int
    steps: tuple[Step, ...]
    culprit: str


Asked = Callable[[Any], tuple[str, str]]
"""The key and the name of the step that an event begins."""

_ASKS: Mapping[type[Event], Asked] = {
    pod.CgroupRequested: lambda _: ("cgroup", "getting its share of the node"),
    pod.DevicesRequested: lambda one: (f"devices/{one.container}", f"getting devices for container {one.container}"),
    pod.SandboxStartRequested: lambda _: ("sandbox", "starting the sandbox"),
    pod.ImageEnsureRequested: lambda one: (
        f"image/{one.container}",
        f"getting image {one.image} for container {one.container}",
    ),
    pod.ContainerCreateRequested: lambda one: (f"create/{one.container}", f"creating container {one.container}"),
    pod.ContainerStartRequested: lambda one: (f"start/{one.container}", f"starting container {one.container}"),
    pod.HookRequested: lambda one: (f"hook/{one.container}", f"running the {one.hook} hook of {one.container}"),
    pod.RestartScheduled: lambda one: (
        f"wait/{one.container}",
        f"waiting out the back-off of container {one.container}",
    ),
    pod.ImageBackOffBegan: lambda one: (f"wait/{one.container}", f"waiting out the back-off of image {one.image}"),
}

_ANSWERS: Mapping[type[Event], Callable[[Any], tuple[str, str]]] = {
    pod.CgroupGranted: lambda _: ("cgroup", ""),
    pod.DevicesGranted: lambda one: (f"devices/{one.container}", ""),
    pod.SandboxStarted: lambda _: ("sandbox", ""),
    pod.SandboxStartFailed: lambda one: ("sandbox", f"failed: {one.message}"),
    pod.ImageReady: lambda one: (f"image/{one.container}", _pulled(one)),
    pod.ImageFailed: lambda one: (f"image/{one.container}", f"{one.reason}: {one.message}"),
    pod.ContainerCreated: lambda one: (f"create/{one.container}", ""),
    pod.ContainerCreateFailed: lambda one: (f"create/{one.container}", f"failed: {one.message}"),
    pod.ContainerStarted: lambda one: (f"start/{one.container}", ""),
    pod.ContainerStartFailed: lambda one: (f"start/{one.container}", f"{one.reason}: {one.message}"),
    pod.HookEnded: lambda one: (f"hook/{one.container}", one.outcome),
    pod.ImageEnsureRequested: lambda one: (f"wait/{one.container}", ""),
}

_NOTES: Mapping[type[Event], Callable[[Any], tuple[str, str]]] = {
    pod.DevicesAwaited: lambda one: (f"devices/{one.container}", one.message),
    pod.HostPortsAwaited: lambda one: ("cgroup", one.message),
}
"""What says why a step goes on."""


def _pulled(one: pod.ImageReady) -> str:
    if not one.pulled:
        return "was there"
    waited = (
        f", after {one.waited_milliseconds / 1000:.1f} s of waiting for its turn" if one.waited_milliseconds else ""
    )
    return f"pulled in {one.milliseconds / 1000:.1f} s{waited}"


def trace(
    name: str, entries: Iterable[Entry], spans: Sequence[Span], probes: Iterable[RawResult], now: int
) -> Trace | None:
    """The last start of the pod `name` (namespace/name); None where the log has none of it."""
    steps, uid = _steps(name, entries, _by_cause(spans))
    if not steps:
        return None
    began = min(one.began for one in steps)
    ended = max(one.ended for one in steps) if all(one.ended for one in steps) else 0
    late = _latest_probe(probes, uid, began)
    culprit = late or _slowest(name, steps, began, ended, now)
    return Trace(pod=name, began=began, ended=ended, steps=tuple(steps), culprit=culprit)


def _by_cause(spans: Sequence[Span]) -> Mapping[str, tuple[Span, ...]]:
    found: dict[str, list[Span]] = {}
    for one in spans:
        found.setdefault(one.cause, []).append(one)
    return {cause: tuple(sorted(some, key=lambda one: one.at)) for cause, some in found.items()}


def _steps(name: str, entries: Iterable[Entry], spans: Mapping[str, tuple[Span, ...]]) -> tuple[list[Step], str]:
    """The steps since the pod was accepted, or since the last restart of a container began."""
    done: list[Step] = []
    open_: dict[str, Step] = {}
    uid = ""
    for entry in entries:
        event = _event(entry) if entry.entity == f"pod/{name}" else None
        if event is None:
            continue
        at = entry.position.milliseconds
        if isinstance(event, pod.SpecAccepted) and event.uid != uid:
            done, open_, uid = [], {}, event.uid
        if isinstance(event, pod.RestartScheduled):
            done = []
        _answered(event, at, open_, done)
        asked = _ASKS.get(type(event))
        if asked is not None and not (isinstance(event, pod.HookRequested) and event.hook == "PreStop"):
            key, words = asked(event)
            open_[key] = Step(name=words, began=at, spans=spans.get(str(entry.position), ()))
    return sorted((*done, *open_.values()), key=lambda one: one.began), uid


def _answered(event: Event, at: int, open_: dict[str, Step], done: list[Step]) -> None:
    note, answer = _NOTES.get(type(event)), _ANSWERS.get(type(event))
    if note is not None:
        key, words = note(event)
        if key in open_:
            open_[key] = msgspec.structs.replace(open_[key], note=words)
    if answer is not None:
        key, words = answer(event)
        if key in open_:
            step = open_.pop(key)
            done.append(msgspec.structs.replace(step, ended=at, note=words or step.note))


def _event(entry: Entry) -> Event | None:
    try:
        return codec.decode(entry.type, entry.data, Event)
    except codec.Undecodable:
        return None


def _slowest(name: str, steps: Sequence[Step], began: int, ended: int, now: int) -> str:
    """`default/web took 12.4 s to start, 11.8 s of it (95 %) getting image ...: pulled in 11.7 s`."""
    whole = max((ended or now) - began, 1)
    worst = max(steps, key=lambda one: one.milliseconds(now))
    took = worst.milliseconds(now)
    verb = "took" if ended else "has been starting for"
    what, reason = worst.name, worst.note
    turn = sum(span.milliseconds for span in worst.spans if span.what == TURN)
    if turn > took / 2:
        what, took = f"waiting for a turn before {worst.name}", round(turn)
        reason = "as many starts as the engine carries were under way"
    start = "" if not ended else " to start"
    because = f": {reason}" if reason else ""
    return (
        f"{name} {verb} {whole / 1000:.3f} s{start}, {took / 1000:.3f} s of it ({share(took, whole)}) {what}{because}"
    )


def share(part: float, whole: float) -> str:
    """`95 %`."""
    return f"{min(round(100 * part / whole), 100)} %"


def _latest_probe(probes: Iterable[RawResult], uid: str, since: int) -> str:
    """The latest start of a probe of this pod's, if one began late; empty if none did."""
    late = [
        one
        for one in probes
        if one.uid == uid and _number(one.at) >= since and _number(one.late_milliseconds) >= LATE_MILLISECONDS
    ]
    if not late:
        return ""
    worst = max(late, key=lambda one: _number(one.late_milliseconds))
    stalled = _number(worst.stalled_milliseconds)
    because = f": agent or machine stood still for {stalled / 1000:.3f} s meanwhile" if stalled else ""
    return (
        f"{worst.pod}: the {worst.probe.lower()} probe of container {worst.container} began "
        f"{_number(worst.late_milliseconds) / 1000:.3f} s late{because}"
    )


def _number(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
