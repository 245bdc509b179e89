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
from typing import TypeVar

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.endings import ending
from chronolet.history.why.facts import Fact
from chronolet.history.why.lives import Life, PodHistory, Run
from chronolet.history.why.resources import image_gone, lost_devices, missing_devices
from chronolet.history.why.stops import changed_spec, hooks, withdrawn
from chronolet_schemas import container_gc, pod, prober
from chronolet_schemas.envelope import Position

_REJECTED = "Pod was rejected: "
"""How the message of a rejected pod begins, as in the kubelet."""
C = TypeVar("C", bound=pod.ContainerEvent)


def trouble(history: PodHistory, life: Life, container: str = "") -> tuple[Cause, ...]:
    """Return why the pod is not as its manifest wants it, or why it has ended; nothing if all is well.

    `container`: consider only this one, and the pod as a whole.
    """
    whole = next(filter(None, (one(history, life) for one in _OF_THE_POD)), ())
    if whole:
        return tuple(whole)
    names = [container] if container else life.names()
    for explain in _OF_A_CONTAINER:
        for name in names:
            if found := explain(history, life, name):
                return tuple(found)
    return tuple(_completed(life, names))


def replacement(history: PodHistory, life: Life) -> tuple[Cause, ...]:
    """Return why the pod took the place of an earlier one of its name; nothing if there was none, or if that one had
    ended before this one was requested.
    """
    index = history.lives.index(life)
    ending_ = history.lives[index - 1].last(pod.TerminationRequested) if index else None
    accepted = life.last(pod.SpecAccepted)
    if ending_ is None or ending_[1].reason != "Replaced" or accepted is None:
        return ()
    fact, event = accepted
    fields = changed_spec(history.lives[index - 1].manifest, event.manifest)
    running = causes.Running(since=fact.at, **where(fact))
    return (causes.ManifestChanged(source=event.source, fields=fields, **where(ending_[0])), running)


# -- the pod as a whole ------------------------------------------------------------------------------------------------
def _ending(history: PodHistory, life: Life) -> Sequence[Cause]:
    requested = next(iter(life.of(pod.TerminationRequested)), None)
    if requested is None:
        return ()
    fact, event = requested
    ending_ = causes.Ending(reason=event.reason, grace_period_seconds=event.grace_period_seconds, **where(fact))
    ended = [causes.Ended(milliseconds=max(gone.at - fact.at, 0), **where(gone)) for gone, _ in life.of(pod.PodEnded)]
    return (*withdrawn(history.requests, life.uid), ending_, *_last_stops(life), *ended[-1:])


def _last_stops(life: Life) -> Iterator[Cause]:
    """Yield what went wrong while the containers of an ending pod were stopped."""
    for run in life.runs:
        stops = [event for _, event in run.of(pod.ContainerStopRequested) if event.reason in ("Deleted", "Replaced")]
        if not stops:
            continue
        yield from hooks(run, "PreStop")
        if run.exit is not None and run.exit.exit_code == causes.EXIT_BY_SIGNAL + causes.KILL:
            grace = stops[-1].grace_period_seconds
            yield causes.Killed(container=run.container, grace_period_seconds=grace, **where(run.exit.fact))
        elif run.exit is None and _runs_hook(run):
            yield from _hook_running(life, run)


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
    if found is None or _since(life, found[0].position, pod.SpecAccepted):
        return ()
    fact, event = found
    return (causes.Blocked(container="", reason="", message=event.message, **where(fact)),)


def _ports(_history: PodHistory, life: Life) -> Sequence[Cause]:
    found = life.last(pod.HostPortsAwaited)
    if found is None or _since(life, found[0].position, pod.CgroupGranted):
        return ()
    fact, event = found
    return (causes.PortTaken(holder=event.holder, message=event.message, **where(fact)),)


def _sandbox(_history: PodHistory, life: Life) -> Sequence[Cause]:
    found = life.last(pod.SandboxStartFailed)
    if found is None or _since(life, found[0].position, pod.SandboxStarted):
        return ()
    return (causes.SandboxFailed(message=found[1].message, **where(found[0])),)


_OF_THE_POD: Sequence[Callable[[PodHistory, Life], Sequence[Cause]]] = (
    _ending,
    _failed,
    _blocked,
    _ports,
    _sandbox,
)


# -- one container -----------------------------------------------------------------------------------------------------
def _container_blocked(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    found = _last_of(life, pod.ContainerBlocked, name)
    if found is None or _since(life, found[0].position, pod.SpecAccepted):
        return ()
    fact, event = found
    return (causes.Blocked(container=name, reason=event.reason, message=event.message, **where(fact)),)


def _devices(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    return missing_devices(history, life, name)


def _image(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    found = _last_of(life, pod.ImageFailed, name)
    if found is None or _since(life, found[0].position, pod.ImageReady, name):
        return ()
    fact, event = found
    missing = causes.ImageMissing(
        container=name,
        image=event.image,
        reason=event.reason,
        message=event.message,
        failures=event.failures,
        retry_at=event.retry_at,
        **where(fact),
    )
    return (missing, *image_gone(history, life, name, event.image, fact.position))


def _start(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    found = _last_of(life, pod.ContainerStartFailed, name)
    if found is None or found[1].id or _since(life, found[0].position, pod.ContainerStarted, name):
        return ()
    fact, event = found
    failed = causes.StartFailed(reason=event.reason, message=event.message, failures=event.failures, **where(fact))
    return (failed,)


def _back_off(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    runs = life.runs_of(name)
    run = runs[-1] if runs else None
    if run is None or run.exit is None or run.scheduled is None or life.of(pod.PodEnded):
        return ()
    event = run.scheduled.event
    if not isinstance(event, pod.RestartScheduled) or not event.back_off_seconds:
        return ()
    waits = causes.BackOff(container=name, seconds=event.back_off_seconds, until=event.at, **where(run.scheduled))
    held_up = (causes.InitWaits(container=name, **where(run.scheduled)),) if life.is_init(name) else ()
    return (*ending(history, life, run), waits, *held_up)


def _init(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    """An init container that failed, and is not started again."""
    runs = life.runs_of(name)
    run = runs[-1] if runs else None
    if run is None or run.exit is None or run.scheduled or not life.is_init(name) or not run.exit.exit_code:
        return ()
    return (*ending(history, life, run), causes.InitWaits(container=name, **where(run.exit.fact)))


def _hook(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    run = _living(life, name)
    return _hook_running(life, run) if run is not None and _runs_hook(run) else ()


def _runs_hook(run: Run) -> bool:
    return len(run.of(pod.HookRequested)) > len(run.of(pod.HookEnded))


def _hook_running(_life: Life, run: Run) -> Sequence[Cause]:
    fact, event = run.of(pod.HookRequested)[-1]
    handler = event.handler
    if handler.exec is not None:
        what = " ".join(handler.exec.command)
    elif handler.sleep is not None:
        what = f"sleep {handler.sleep.seconds}"
    else:
        what = "an HTTP request" if handler.http_get is not None else "no action"
    return (causes.HookRunning(container=run.container, hook=event.hook, handler=what, **where(fact)),)


def _readiness(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    run = _living(life, name)
    definition = life.definition(name)
    if run is None or definition is None:
        return ()
    defined: tuple[tuple[prober.ProbeName, object], ...] = (
        ("Startup", definition.startup_probe),
        ("Readiness", definition.readiness_probe),
    )
    for probe in (name for name, one in defined if one is not None):
        results = [one.result for _, one in life.of(prober.ResultChanged) if (one.probe, one.id) == (probe, run.id)]
        if not results or results[-1] != "success":
            return (_not_ready(life, run, probe),)
    return ()


def _not_ready(life: Life, run: Run, probe: prober.ProbeName) -> Cause:
    for fact, event in reversed(life.of(prober.ProbeFailed)):
        if event.probe == probe and event.id == run.id:
            return causes.NotReady(
                container=run.container,
                probe=probe,
                consecutive=event.consecutive,
                threshold=event.threshold,
                output=event.output.strip(),
                code=event.code,
                **where(fact),
            )
    return causes.NotReady(container=run.container, probe=probe, **where(run.started))


def _lost(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    return lost_devices(history, life, name) if _living(life, name) is not None else ()


def _not_started(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    """A container that has never run, or has ended and is being started."""
    runs = life.runs_of(name)
    if runs and (runs[-1].exit is None or runs[-1].scheduled is None):
        return ()
    if not runs and any(life.is_init(one.container) and one.exit is None for one in life.runs):
        running = next(one for one in life.runs if life.is_init(one.container) and one.exit is None)
        return (causes.InitWaits(container=running.container, **where(running.started)),)
    last = next((one for one in reversed(life.facts) if _is_step(one.event)), None)
    if last is None:
        return ()
    return (causes.Starting(step=type(last.event).__name__, **where(last)),)


def _is_step(event: object) -> bool:
    return isinstance(event, pod.PodEvent) and type(event).__name__.endswith(("Requested", "Began", "Accepted"))


_OF_A_CONTAINER: Sequence[Callable[[PodHistory, Life, str], Sequence[Cause]]] = (
    _container_blocked,
    _devices,
    _image,
    _start,
    _back_off,
    _init,
    _hook,
    _not_started,
    _readiness,
    _lost,
)


def _completed(life: Life, names: Sequence[str]) -> Iterator[Cause]:
    """Yield that all containers have ended and none is restarted, if that is so."""
    last = [runs[-1] for name in names if (runs := life.runs_of(name))]
    if not last or any(one.exit is None or one.scheduled is not None for one in last):
        return
    ends = [one.exit for one in last if one.exit is not None]
    fact = max((one.fact for one in ends), key=lambda one: one.position)
    failed = any(one.exit_code for one in ends)
    yield causes.Completed(policy=life.manifest.spec.restart_policy, failed=failed, **where(fact))
    yield from _collected(life)


def _collected(life: Life) -> Iterator[Cause]:
    """Yield the removal of the pod's last dead container by container collection."""
    for fact, event in life.of(container_gc.Removed)[-1:]:
        yield causes.Collected(rule=event.rule, **where(fact))


def _living(life: Life, name: str) -> Run | None:
    runs = life.runs_of(name)
    return runs[-1] if runs and runs[-1].exit is None else None


def _last_of(life: Life, kind: type[C], name: str) -> tuple[Fact, C] | None:
    """Return the last fact about this container whose event has this class."""
    return next(((fact, event) for fact, event in reversed(life.of(kind)) if event.container == name), None)


def _since(life: Life, position: Position, kind: type[pod.PodEvent], name: str = "") -> bool:
    """Return whether the life has such an event after this position, about this container if one is named."""
    return any(
        fact.position > position and (not name or getattr(event, "container", "") == name)
        for fact, event in life.of(kind)
    )
