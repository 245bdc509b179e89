"""Explains why one container of a pod does not run, or does not count as ready. Pure.

Input: the history of a pod, a container's name. Output: causes; the first one answers the question. Next: `present`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.endings import ending
from chronolet.history.why.facts import Fact
from chronolet.history.why.records import Life, PodHistory, Run
from chronolet.history.why.resources import image_gone, lost_devices, missing_devices
from chronolet.history.why.stops import stopped
from chronolet.history.why.wording import cut
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Position

C = TypeVar("C", bound=pod.ContainerEvent)


def _container_blocked(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    found = _last_of(life, pod.ContainerBlocked, name)
    if found is None or since(life, found[0].position, pod.SpecAccepted):
        return ()
    fact, event = found
    return (causes.Blocked(container=name, reason=event.reason, message=event.message, **where(fact)),)


def _devices(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    return missing_devices(history, life, name)


def _image(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    found = _last_of(life, pod.ImageFailed, name)
    if found is None or since(life, found[0].position, pod.ImageReady, name):
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
    return (missing, *image_gone(history, event.image, fact.position))


def _start(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    found = _last_of(life, pod.ContainerStartFailed, name)
    if found is None or found[1].id or since(life, found[0].position, pod.ContainerStarted, name):
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


def _stopping(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    """A container that chronolet is stopping."""
    run = living(life, name)
    requested = run.of(pod.ContainerStopRequested) if run is not None else []
    return stopped(history, life, run, requested[0], None) if run is not None and requested else ()


def _ended(history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    """A container that has ended, and whose restart is not decided yet."""
    run = next(reversed(life.runs_of(name)), None)
    if run is None or run.exit is None or run.scheduled is not None or not _restarts(life, name, run.exit.exit_code):
        return ()
    return ending(history, life, run)


def _restarts(life: Life, name: str, exit_code: int) -> bool:
    """Whether the restart policy restarts an app container, or a sidecar, after this exit code."""
    own = life.definition(name)
    policy = (own.restart_policy if own else None) or life.manifest.spec.restart_policy
    return (
        own is not None
        and not life.is_init(name)
        and (policy == "Always" or (policy == "OnFailure" and exit_code != 0))
    )


def _hook(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    run = living(life, name)
    return hook_running(run) if run is not None and runs_hook(run) else ()


def runs_hook(run: Run) -> bool:
    """Return whether a hook of the run has not ended."""
    return len(run.of(pod.HookRequested)) > len(run.of(pod.HookEnded))


def hook_running(run: Run) -> Sequence[Cause]:
    """Return the hook that has not ended."""
    fact, event = run.of(pod.HookRequested)[-1]
    handler = event.handler
    if handler.exec is not None:
        what = cut(" ".join(handler.exec.command))
    elif handler.sleep is not None:
        what = f"sleep {handler.sleep.seconds}"
    else:
        what = "an HTTP request" if handler.http_get is not None else "no action"
    return (causes.HookRunning(container=run.container, hook=event.hook, handler=what, **where(fact)),)


def _readiness(_history: PodHistory, life: Life, name: str) -> Sequence[Cause]:
    run = living(life, name)
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
    return lost_devices(history, life, name) if living(life, name) is not None else ()


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


OF_A_CONTAINER: Sequence[Callable[[PodHistory, Life, str], Sequence[Cause]]] = (
    _container_blocked,
    _devices,
    _image,
    _start,
    _back_off,
    _init,
    _ended,
    _stopping,
    _hook,
    _not_started,
    _readiness,
    _lost,
)


def living(life: Life, name: str) -> Run | None:
    runs = life.runs_of(name)
    return runs[-1] if runs and runs[-1].exit is None and runs[-1].scheduled is None else None


def _last_of(life: Life, kind: type[C], name: str) -> tuple[Fact, C] | None:
    """Return the last fact about this container whose event has this class."""
    return next(((fact, event) for fact, event in reversed(life.of(kind)) if event.container == name), None)


def since(life: Life, position: Position, kind: type[pod.PodEvent], name: str = "") -> bool:
    """Return whether the life has such an event after this position, about this container if one is named."""
    return any(
        fact.position > position and (not name or getattr(event, "container", "") == name)
        for fact, event in life.of(kind)
    )
