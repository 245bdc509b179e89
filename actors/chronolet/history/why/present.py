"""Explains the present state of a pod: why it was refused, does not start, is not ready, ends or has ended. Pure.

Input: the history of a pod. Output: causes; the first one answers the question. Next:
`answer`, which explains the last restart instead if all is well.

    it ends or has ended            Withdrawn or another pod of its name, Ending, Killed, Ended
    it has failed, or was rejected  Failed, with what led to it
    it cannot start                 Blocked, PortTaken, DevicesMissing, SandboxFailed, ImageMissing, StartFailed
    a container waits               BackOff, after the causes of the end of its last run
    it does not count as started    HookRunning, NotReady
    it has lost something           DeviceLost, PluginGone
    all containers have ended       Completed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.containers import OF_A_CONTAINER, hook_running, runs_hook, since
from chronolet.history.why.endings import death_of, ending
from chronolet.history.why.facts import Fact
from chronolet.history.why.records import Life, PodHistory
from chronolet.history.why.stops import changed_spec, hooks, killed_at_deadline, killed_early, withdrawn
from chronolet_schemas import container_gc, pod

_REJECTED = "Pod was rejected: "
"""How the message of a rejected pod begins, as in the kubelet."""
NO_SPACE = "no space left on device"
"""The kernel's text for a full disk, which is part of every engine's error messages about it."""


def trouble(history: PodHistory, life: Life, container: str = "") -> tuple[Cause, ...]:
    """Return why the pod is not as its manifest wants it, or why it has ended; nothing if all is well.

    `container`: consider only this one, and the pod as a whole.
    """
    found = next(filter(None, (one(history, life) for one in _OF_THE_POD)), ())
    names = [container] if container else life.names()
    of_containers = (explain(history, life, name) for explain in OF_A_CONTAINER for name in names)
    found = found or next(filter(None, of_containers), ()) or tuple(_completed(history, life, names))
    return (*found, *_disk_full(found))


def _disk_full(found: Sequence[Cause]) -> Iterator[Cause]:
    """Yield that a disk is full, if that is why something could not be started."""
    first = found[0] if found else None
    if isinstance(first, causes.SandboxFailed | causes.StartFailed | causes.ImageMissing) and NO_SPACE in first.message:
        yield causes.DiskFull(at=first.at, position=first.position)


def replacement(history: PodHistory, life: Life) -> tuple[Cause, ...]:
    """Return why the pod took the place of an earlier one of its name; nothing if there was none, or if that one had
    ended before this one was requested.
    """
    index = history.number_of(life)
    awaits = _successor(history.lives[index - 1]) if index else None
    accepted = life.last(pod.SpecAccepted)
    if awaits is None or awaits[1].successor != life.uid or accepted is None:
        return ()
    fact, event = accepted
    fields = changed_spec(history.lives[index - 1].manifest, event.manifest)
    running = causes.Running(since=fact.at, **where(fact))
    return (causes.ManifestChanged(source=event.source, fields=fields, **where(awaits[0])), running)


def _successor(life: Life) -> tuple[Fact, pod.SuccessorAwaits] | None:
    """Return the request of another pod of this name that waits for the end of this one; None if there is none."""
    found = life.last(pod.SuccessorAwaits)
    return found if found is not None and found[1].successor else None


# -- the pod as a whole ------------------------------------------------------------------------------------------------
def _ending(history: PodHistory, life: Life) -> Sequence[Cause]:
    requested = next(iter(life.of(pod.TerminationRequested)), None)
    if requested is None:
        return ()
    fact, event = requested
    reason: pod.EndReason = "Replaced" if _successor(life) else event.reason
    ending_ = causes.Ending(reason=reason, grace_period_seconds=event.grace_period_seconds, **where(fact))
    ended = [causes.Ended(milliseconds=max(gone.at - fact.at, 0), **where(gone)) for gone, _ in life.of(pod.PodEnded)]
    return (*withdrawn(history, life), ending_, *_last_stops(history, life), *ended[-1:])


def _last_stops(history: PodHistory, life: Life) -> Iterator[Cause]:
    """Yield what went wrong while the containers of an ending pod were stopped."""
    for run in life.runs:
        stops = [event for _, event in run.of(pod.ContainerStopRequested) if event.reason in ("Deleted", "Replaced")]
        if not stops:
            continue
        yield from hooks(run, "PreStop")
        if run.exit is not None and killed_at_deadline(run, death_of(run)):
            grace = stops[-1].grace_period_seconds
            yield causes.Killed(container=run.container, grace_period_seconds=grace, **where(run.exit.fact))
        yield from killed_early(history, run, death_of(run), oom=False)
        if run.exit is None and runs_hook(run):
            yield from hook_running(run)


def _failed(_history: PodHistory, life: Life) -> Sequence[Cause]:
    found = life.last(pod.PodFailed)
    if found is None:
        return ()
    fact, event = found
    rejected = event.message.startswith(_REJECTED)
    message = event.message.removeprefix(_REJECTED)
    failed = causes.Failed(reason=event.reason, message=message, rejected=rejected, **where(fact))
    return (failed, *_collected(life))


def _blocked(_history: PodHistory, life: Life) -> Sequence[Cause]:
    found = life.last(pod.SandboxBlocked)
    if found is None or since(life, found[0].position, pod.SpecAccepted):
        return ()
    fact, event = found
    return (causes.Blocked(container="", reason="", message=event.message, **where(fact)),)


def _ports(_history: PodHistory, life: Life) -> Sequence[Cause]:
    found = life.last(pod.HostPortsAwaited)
    if found is None or since(life, found[0].position, pod.CgroupGranted):
        return ()
    fact, event = found
    return (causes.PortTaken(holder=event.holder, message=event.message, **where(fact)),)


def _sandbox(_history: PodHistory, life: Life) -> Sequence[Cause]:
    found = life.last(pod.SandboxStartFailed)
    if found is None or since(life, found[0].position, pod.SandboxStarted):
        return ()
    return (causes.SandboxFailed(message=found[1].message, **where(found[0])),)


_OF_THE_POD: Sequence[Callable[[PodHistory, Life], Sequence[Cause]]] = (
    _ending,
    _failed,
    _blocked,
    _ports,
    _sandbox,
)


def _completed(history: PodHistory, life: Life, names: Sequence[str]) -> Iterator[Cause]:
    """Yield that all containers have ended and none is restarted, if that is so; first, why an app container failed."""
    last = [runs[-1] for name in names if (runs := life.runs_of(name))]
    if not last or any(one.exit is None or one.scheduled is not None for one in last):
        return
    apps = {one.name for one in life.manifest.spec.containers}
    failed = [one for one in last if one.exit is not None and one.exit.exit_code and one.container in apps]
    yield from ending(history, life, failed[-1]) if failed else ()
    fact = max((one.exit.fact for one in last if one.exit is not None), key=lambda one: one.position)
    yield causes.Completed(policy=life.manifest.spec.restart_policy, failed=bool(failed), **where(fact))
    yield from _collected(life)


def _collected(life: Life) -> Iterator[Cause]:
    """Yield the removal of the pod's last dead container by container collection."""
    for fact, event in life.of(container_gc.Removed)[-1:]:
        yield causes.Collected(rule=event.rule, **where(fact))
