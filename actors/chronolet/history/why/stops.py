"""Explains the stop of a container by chronolet. Pure.

Input: a run that was stopped, its life. Output: causes, the root first, then hooks and `Stopped`. Next: `endings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.facts import Fact
from chronolet.history.why.outages import engine_ended, sandbox_deaths, sent_to
from chronolet.history.why.records import Exit, Life, PodHistory, Run, definitions
from chronolet_schemas import manifests, pleg, pod, prober
from chronolet_schemas.podspec import Pod

Stop = tuple[Fact, pod.ContainerStopRequested]

_PROBES: Mapping[str, prober.ProbeName] = {"LivenessFailed": "Liveness", "StartupFailed": "Startup"}


def stop_of(run: Run, exit_: Exit, death: pleg.ContainerDied | None) -> Stop | None:
    """Return the first request to stop this run; None if there is none, or if it came too late to end the run."""
    found = next(iter(run.of(pod.ContainerStopRequested)), None)
    if found is None or found[0].position > exit_.fact.position:
        return None
    untouched = death is not None and death.sent == ()
    return None if untouched and not _hook_ended_it(run) else found


def _hook_ended_it(run: Run) -> bool:
    """Whether the run may have ended during its preStop hook, before any signal."""
    return any(event.hook == "PreStop" for _, event in run.of(pod.HookRequested))


def stopped(history: PodHistory, life: Life, run: Run, stop: Stop, death: pleg.ContainerDied | None) -> Sequence[Cause]:
    """Return the causes of a stop."""
    fact, event = stop
    sent = death.sent if death else None
    code = run.exit.exit_code if run.exit else 0
    killed = code == causes.EXIT_BY_SIGNAL + causes.KILL and (sent is None or causes.KILL in sent)
    return (
        *_reason(history, life, run, event),
        causes.Stopped(
            container=run.container,
            reason=event.reason,
            grace_period_seconds=event.grace_period_seconds,
            signals=sent,
            killed=killed,
            **where(fact),
        ),
        *hooks(run, "PreStop"),
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
    for fact, event in reversed(life.of(prober.ResultChanged)):
        if event.probe == probe and event.id == run.id and event.result == "failure":
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
    died = [one for one in sandbox_deaths(life) if one[0].position > run.started.position]
    if not died:
        return ()
    fact, event = died[0]
    sent = sent_to(life, event.id)
    died_with_it = engine_ended(history, life, event.finished_at, sent)
    return died_with_it or (causes.SandboxDied(exit_code=event.exit_code, signals=sent, **where(fact)),)


def withdrawn(requests: Sequence[Fact], uid: str) -> Sequence[Cause]:
    """Return the last request to end the pod with this uid."""
    return [
        causes.Withdrawn(source=one.event.source, grace_period_seconds=one.event.grace_period_seconds, **where(one))
        for one in requests
        if isinstance(one.event, manifests.PodWithdrawn) and one.event.uid == uid
    ][-1:]
