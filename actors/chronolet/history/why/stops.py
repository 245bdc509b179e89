"""Explains the stop of a container by chronolet. Pure.

Input: a run that was stopped, its life. Output: causes, the root first, then hooks and `Stopped`. Next: `endings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.facts import Fact
from chronolet.history.why.outages import engine_ended, outage_at, sandbox_deaths, sandbox_died, sent_to
from chronolet.history.why.records import Exit, Life, PodHistory, Run, definitions
from chronolet_schemas import manifests, pleg, pod, prober
from chronolet_schemas.podspec import Pod

Stop = tuple[Fact, pod.ContainerStopRequested]

SLACK_MILLISECONDS = 1_000
"""Times of Docker and of the agent may differ by this, and a signal may take this long."""
_PROBES: Mapping[str, prober.ProbeName] = {"LivenessFailed": "Liveness", "StartupFailed": "Startup"}


def stop_of(run: Run, exit_: Exit, death: pleg.ContainerDied | None) -> Stop | None:
    """Return the first request to stop this run; None if there is none, or if it came too late to end the run.

    It came too late if the run ended before it, or so shortly after it that no signal was sent yet.
    """
    found = next(iter(run.of(pod.ContainerStopRequested)), None)
    if found is None or found[0].position > exit_.fact.position:
        return None
    untouched = death is not None and death.sent == () and not _hook_ran(run)
    before = exit_.finished_at - found[0].at
    too_late = before < (SLACK_MILLISECONDS if untouched else -SLACK_MILLISECONDS)
    return None if exit_.finished_at and too_late else found


def _hook_ran(run: Run) -> bool:
    """Whether the run may have ended during its preStop hook, before any signal."""
    return any(event.hook == "PreStop" for _, event in run.of(pod.HookRequested))


def killed_at_deadline(run: Run, death: pleg.ContainerDied | None) -> bool:
    """Return whether a stopped run was killed because its grace period was over.

    The deadline is that of the last request before the end. Without a time of the end, the signals must show it.
    """
    if run.exit is None or run.exit.exit_code != causes.EXIT_BY_SIGNAL + causes.KILL:
        return False
    sent = death.sent if death else None
    if sent is not None and causes.KILL not in sent:
        return False
    if not run.exit.finished_at:
        return sent is not None
    deadline = _deadline(run, run.exit)
    return deadline == 0 or run.exit.finished_at >= deadline - SLACK_MILLISECONDS


def _deadline(run: Run, exit_: Exit) -> int:
    requested = [(fact.position, event.deadline) for fact, event in run.of(pod.ContainerStopRequested)]
    released = [(fact.position, event.deadline) for fact, event in run.of(pod.ContainerStopReleased)]
    before = sorted(one for one in (*requested, *released) if one[0] <= exit_.fact.position)
    return before[-1][1] if before else 0


def killed_early(
    history: PodHistory, run: Run, death: pleg.ContainerDied | None, *, oom: bool
) -> Sequence[causes.KilledEarly]:
    """Return that a run was killed before the deadline of its stop; nothing if it was not, or if Docker ended."""
    exit_ = run.exit
    killed = exit_ is not None and exit_.exit_code == causes.EXIT_BY_SIGNAL + causes.KILL
    if exit_ is None or not killed or not exit_.finished_at or killed_at_deadline(run, death):
        return ()
    if outage_at(history, exit_.finished_at, whole_pod=False):
        return ()
    docker = death is not None and causes.KILL in (death.sent or ())
    return (causes.KilledEarly(oom=oom and not docker, docker=docker, **where(exit_.fact)),)


def stopped(
    history: PodHistory, life: Life, run: Run, stop: Stop, death: pleg.ContainerDied | None, *, oom: bool = False
) -> Sequence[Cause]:
    """Return the causes of a stop. `oom`: the kernel killed a process of the container shortly before its end."""
    fact, event = stop
    sent = death.sent if death else None
    reason = _reason(history, life, run, event)
    return (
        *reason,
        causes.Stopped(
            container=run.container,
            reason=event.reason,
            grace_period_seconds=event.grace_period_seconds,
            signals=sent,
            killed=killed_at_deadline(run, death),
            explained=bool(reason),
            **where(fact),
        ),
        *hooks(run, "PreStop"),
        *killed_early(history, run, death, oom=oom),
    )


def _reason(history: PodHistory, life: Life, run: Run, event: pod.ContainerStopRequested) -> Sequence[Cause]:
    probe = _PROBES.get(event.reason)
    if probe is not None:
        return _probe(life, run, probe)
    match event.reason:
        case "FailedPostStartHook":
            return hooks(run, "PostStart")
        case "SpecChanged":
            return _changed(life, run)
        case "SandboxGone":
            return _sandbox(history, life, run) or _changed(life, run)
        case "PodFailed":
            return [
                causes.Failed(reason=one.reason, message=one.message, **where(fact))
                for fact, one in life.of(pod.PodFailed)
            ][-1:]
        case _:
            return ()


def _probe(life: Life, run: Run, probe: prober.ProbeName) -> Sequence[Cause]:
    """Return the failure of this probe that the run was stopped for; the last one before it, if the entry about the
    probe's result is missing.
    """
    stop = run.of(pod.ContainerStopRequested)[0][0].position
    results = [one for one in life.of(prober.ResultChanged) if one[1].result == "failure"]
    failures: list[tuple[Fact, prober.ResultChanged | prober.ProbeFailed]] = [*life.of(prober.ProbeFailed), *results]
    for fact, event in reversed(failures):
        if event.probe == probe and event.id == run.id and fact.position < stop:
            held = [one.held_milliseconds for _, one in run.of(pleg.ProbeKillReleased)]
            return (
                causes.ProbeFailed(
                    probe=probe,
                    consecutive=event.consecutive,
                    threshold=event.threshold,
                    output=event.output.strip(),
                    code=event.code,
                    held_milliseconds=held[-1] if held else 0,
                    **where(fact),
                ),
            )
    return ()


def hooks(run: Run, hook: pod.HookName) -> Sequence[Cause]:
    """Return the run's hooks of this kind that did not succeed."""
    began = {event.hook: event.requested_at for _, event in run.of(pod.HookRequested)}
    return [
        causes.HookFailed(
            hook=hook,
            outcome=event.outcome,
            message=event.message,
            milliseconds=max(fact.at - began.get(hook, fact.at), 0),
            **where(fact),
        )
        for fact, event in run.of(pod.HookEnded)
        if event.hook == hook and event.outcome != "Succeeded"
    ]


def _changed(life: Life, run: Run) -> Sequence[Cause]:
    """Return the change of the spec that the container was last started before."""
    specs = life.of(pod.SpecAccepted)
    stop = run.of(pod.ContainerStopRequested)[0][0].position
    index = max((number for number, (fact, _) in enumerate(specs) if fact.position < stop), default=-1)
    if index < 0:
        return ()
    fact, event = specs[index]
    fields = changed_fields(specs[index - 1][1].manifest, event.manifest, run.container) if index else ()
    return (causes.ManifestChanged(source=event.source, fields=fields, **where(fact)),)


def changed_spec(before: Pod, after: Pod) -> tuple[str, ...]:
    """Return which fields differ between two specs; those of containers after the container's name."""
    names = list(dict.fromkeys(one.name for spec in (before, after) for _, one in definitions(spec)))
    inner = [f"{name}.{field}" for name in names for field in changed_fields(before, after, name)]
    lists = ("containers", "initContainers", "ephemeralContainers")
    one, other = (msgspec.to_builtins(spec.spec) for spec in (before, after))
    outer = sorted(name for name in {*one, *other} if name not in lists and one.get(name) != other.get(name))
    return (*inner, *outer)


def changed_fields(before: Pod, after: Pod, container: str) -> tuple[str, ...]:
    """Return the fields of a container that differ between two specs, with both values if they are short."""
    one: dict[str, object]
    other: dict[str, object]
    one, other = (
        next((msgspec.to_builtins(found) for _, found in definitions(spec) if found.name == container), {})
        for spec in (before, after)
    )
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    return tuple(_change(name, one.get(name), other.get(name)) for name in names)


def _change(name: str, before: object, after: object) -> str:
    if isinstance(before, str) and isinstance(after, str):
        return f"{name}: {before} -> {after}"
    return name


def _sandbox(history: PodHistory, life: Life, run: Run) -> Sequence[Cause]:
    """Return the death of the run's sandbox; nothing if chronolet stopped it, to replace it."""
    deaths = [
        (fact, event)
        for fact, event in sandbox_deaths(life)
        if (event.finished_at >= run.started_at if run.start_missing else fact.position > run.started.position)
    ]
    if not deaths:
        return ()
    event = deaths[0][1]
    died_with_it = engine_ended(history, life, event.finished_at, sent_to(life, event.id))
    return died_with_it or (sandbox_died(history, life, run, deaths[0]),)


def withdrawn(history: PodHistory, life: Life) -> Sequence[Cause]:
    """Return the last request to end the pod in this life: an earlier pod may have had the same uid."""
    begin = history.begin_of(life)
    return [
        causes.Withdrawn(source=one.event.source, grace_period_seconds=one.event.grace_period_seconds, **where(one))
        for one in history.requests
        if isinstance(one.event, manifests.PodWithdrawn) and one.event.uid == life.uid and one.position > begin
    ][-1:]
