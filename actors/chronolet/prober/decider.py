"""The prober's decider: turns probe outcomes into streaks, results and kill requests. Pure.

Input: probe requests and container changes of the pod (`pod`), released kills (`pleg`), outcomes from the worker
(`signals`). Output: events of the probe, with their KubeEvents. Next: `pod`, which subscribes to ResultChanged; `pleg`,
which decides on requested kills. Source: pkg/kubelet/prober/worker.go (doProbe), prober_manager.go,
results/results_manager.go.

A probe is `idle` while its container is not running, `gated` until the container counts as started (a startup probe:
from then on), and `held` once a threshold has ended the probing of this run of the container. While it is `probed` or
`asked`, a worker probes.

    probe    event            to
    -        ProbeAdded       idle      pod.ProbingRequested; ProbingBegan and the initial ResultChanged follow
    idle     ProbeAdded       idle      pod.ProbingRequested with another definition
    idle     ProbingBegan     gated     pod.ProbingRequested
    idle     ProbingBegan     probed    likewise, and its gate is open
    idle     ProbeRemoved     -         pod.ProbingWithdrawn
    gated    ProbingBegan     gated     another container, or another run of it
    gated    ProbingBegan     probed    likewise, and its gate is open
    gated    GateOpened       probed    pod.ContainerProbed: the startup probe has succeeded
    gated    ProbeAdded       gated     another definition
    gated    ProbeAdded       idle      another pod of this name
    gated    ResultChanged    gated
    gated    ProbingPaused    idle      pod.ContainerExited, RestartScheduled
    gated    ProbingEnded     idle      likewise, permanently; or pod.ContainerStopRequested, except for readiness
    gated    ProbeRemoved     -
    probed   ProbeSucceeded   probed
    probed   ProbeFailed      probed
    probed   ProbeErrored     probed
    probed   ProbeUnjudged    probed    streak and result are unchanged
    probed   ProbeDelayed     probed
    probed   ResultChanged    probed    at a threshold
    probed   ProbeSucceeded   held      a startup probe at its success threshold
    probed   ProbeFailed      held      a liveness or startup probe at its failure threshold
    probed   KillAsked        asked     not held, because the machine has a shortage
    probed   ProbingBegan     probed
    probed   ProbingBegan     gated
    probed   ProbeAdded       probed
    probed   ProbeAdded       idle
    probed   ProbingPaused    idle
    probed   ProbingEnded     idle
    probed   ProbeRemoved     -
    asked    ProbeFailed      asked
    asked    ProbeErrored     asked
    asked    ProbeUnjudged    asked
    asked    ProbeDelayed     asked
    asked    ResultChanged    held      pleg.ProbeKillReleased
    asked    KillWithdrawn    probed    success, another run or definition, end of probing, failure without a shortage
    held     GateOpened       held
    held     ResultChanged    held
    held     ProbingBegan     gated
    held     ProbingBegan     probed
    held     ProbeAdded       held
    held     ProbeAdded       idle
    held     ProbingPaused    idle
    held     ProbingEnded     idle
    held     ProbeRemoved     -

Up to a threshold, every success or failure is an event. Beyond it none is, except the first one of a run of the
container, one that changes the result, a reminder while failures or warnings persist, and a success that follows
unjudged outcomes or a kill request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict, assert_never

from chronolet.kernel.decider import Decider, Due, Effect
from chronolet.prober import reporting, schedule, signals, wanted
from chronolet.prober.evolve import evolve
from chronolet.prober.outcomes import REMINDER_MS, counts_as
from chronolet.prober.state import State
from chronolet.rules.probes.results import UNPROBED
from chronolet.rules.refs import ProbeRef, RunRef
from chronolet_schemas import pleg, pod, prober
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Probe, RestartPolicy

_OF_ITS_END: frozenset[pod.StopReason] = frozenset(("Deleted", "Replaced"))
"""Stop reasons that end the whole pod, so that its liveness no longer matters."""

_Subscribed = (
    pod.ProbingRequested
    | pod.ProbingWithdrawn
    | pod.ContainerProbed
    | pod.ContainerStopRequested
    | pod.ContainerExited
    | pod.RestartScheduled
    | pleg.ProbeKillReleased
)
ProberMessage = _Subscribed | signals.ProbeOutcome | signals.ProbeLate | Due
"""Every message that a probe handles."""


def decide(state: State, message: ProberMessage, now: int) -> Sequence[Event]:
    """Return the events that follow from one message, each followed by its KubeEvents."""
    facts = tuple(_facts(state, message, now))
    if state.asked and not isinstance(message, pleg.ProbeKillReleased) and any(map(_settles, facts)):
        facts = (prober.KillWithdrawn(id=state.id, started_at=state.started_at, **_ref(state)), *facts)
    return tuple(one for event in facts for one in (event, *reporting.kube_events_for(state, event)))


def _settles(event: Event) -> bool:
    """Whether `event` makes a requested kill obsolete."""
    return isinstance(
        event,
        prober.ProbeSucceeded
        | prober.ResultChanged
        | prober.ProbeAdded
        | prober.ProbingBegan
        | prober.ProbingPaused
        | prober.ProbingEnded
        | prober.ProbeRemoved,
    )


def _facts(state: State, message: ProberMessage, now: int) -> Iterable[Event]:  # noqa: PLR0911 - a table
    match message:
        case signals.ProbeOutcome():
            return _outcome(state, message, now)
        case signals.ProbeLate():
            return _late(state, message)
        case pod.ProbingRequested():
            return _requested(state, message, now)
        case pleg.ProbeKillReleased():
            return _released(state, message)
        case pod.ProbingWithdrawn():
            return (prober.ProbeRemoved(**_ref(state)),)
        case Due():
            return ()
        case _:
            return _of_container(state, message, now)


def _of_container(
    state: State,
    message: pod.ContainerProbed | pod.ContainerStopRequested | pod.ContainerExited | pod.RestartScheduled,
    now: int,
) -> Iterable[Event]:
    """Handle a change of the probed container; ignore all other containers."""
    if not state.running or not _is_about(state, message):
        return ()
    match message:
        case pod.ContainerProbed():
            return _started(state, message, now)
        case pod.ContainerStopRequested():
            return _stopping(state, message)
        case pod.ContainerExited():
            return _not_running(state, again=_runs_again(state, message))
        case pod.RestartScheduled():
            return _not_running(state, again=True)
        case _:
            assert_never(message)


def _is_about(
    state: State,
    message: pod.ContainerProbed | pod.ContainerStopRequested | pod.ContainerExited | pod.RestartScheduled,
) -> bool:
    """Whether the message is about the probed container, and for ContainerProbed also about its current run.

    The id identifies the container, because an engine that was killed may have two with the same attempt number. Only
    RestartScheduled has no id; there, uid and attempt are compared.
    """
    if isinstance(message, pod.RestartScheduled):
        return (message.uid, message.attempt) == (state.uid, state.attempt)
    if isinstance(message, pod.ContainerProbed) and message.started_at != state.started_at:
        return False
    return message.id == state.id


class _Definition(TypedDict):
    definition: Probe
    restarts: RestartPolicy
    period_milliseconds: int
    field: str


def _requested(state: State, message: pod.ProbingRequested, now: int) -> Iterator[Event]:
    """Handle a request. A changed definition applies immediately; another container or run starts with the initial
    result, and so does a run that no longer counts as started.
    """
    ref = ProbeRef(pod=message.pod, uid=message.uid, container=message.container, probe=message.probe)
    same = state.uid == message.uid
    definition = _Definition(
        definition=message.definition,
        restarts=message.restarts,
        period_milliseconds=message.period_milliseconds,
        field=message.field,
    )
    if not same or any(getattr(state, name) != value for name, value in definition.items()):
        yield prober.ProbeAdded(change=state.change + 1 if same else 0, **definition, **ref)
    known = same and (state.id, state.started_at) == (message.id, message.started_at)
    if known and (message.started or not state.started):
        return
    yield prober.ProbingBegan(
        attempt=message.attempt,
        id=message.id,
        started_at=message.started_at,
        ip=message.ip,
        from_at=schedule.first_at(
            started_at=message.started_at,
            delay=message.definition.initial_delay_seconds * 1000,
            period=message.period_milliseconds,
            now=now,
            seed=f"{message.id}/{message.probe}",
        ),
        started=message.started,
        **ref,
    )
    run = RunRef(attempt=message.attempt, id=message.id, started_at=message.started_at)
    yield prober.ResultChanged(result=UNPROBED[message.probe], **run, **ref)


def _started(state: State, message: pod.ContainerProbed, now: int) -> Iterator[Event]:
    """End the phase `gated` after a successful startup probe: from now on, the container counts as started."""
    if (message.probe, message.result) == ("Startup", "success") and not state.started:
        yield prober.GateOpened(id=state.id, from_at=max(state.from_at, now), **_ref(state))


def _stopping(state: State, message: pod.ContainerStopRequested) -> Iterator[Event]:
    if state.probe == "Readiness":
        return
    if message.reason in _OF_ITS_END and state.result != "success":
        yield _changed(state, "success")
    yield prober.ProbingEnded(id=state.id, **_ref(state))


def _runs_again(state: State, message: pod.ContainerExited) -> bool:
    return state.restarts == "Always" or (state.restarts == "OnFailure" and message.exit_code != 0)


def _not_running(state: State, *, again: bool) -> Iterator[Event]:
    if state.result != "failure":
        yield _changed(state, "failure")
    if again:
        yield prober.ProbingPaused(id=state.id, **_ref(state))
    else:
        yield prober.ProbingEnded(id=state.id, **_ref(state))


def _changed(state: State, result: prober.ProbeResult) -> Event:
    """Return a ResultChanged that was not caused by an outcome."""
    return prober.ResultChanged(result=result, **_run(state), **_ref(state))


def _late(state: State, message: signals.ProbeLate) -> Iterator[Event]:
    if _is_wanted(state, message):
        yield prober.ProbeDelayed(
            id=state.id,
            late_milliseconds=message.late_milliseconds,
            agent_late_milliseconds=message.agent_late_milliseconds,
            **_ref(state),
        )


def _outcome(state: State, message: signals.ProbeOutcome, now: int) -> Iterator[Event]:
    if not _is_wanted(state, message):
        return
    counted = counts_as(message.outcome)
    if counted == "unjudged":
        yield _unjudged(state, message)
        return
    if counted == "error":
        if not state.errored or _reminds(state, now):
            yield prober.ProbeErrored(
                id=state.id,
                at=message.at,
                milliseconds=message.milliseconds,
                output=message.output,
                **_ref(state),
            )
        return
    threshold = state.definition.success_threshold if counted == "success" else state.definition.failure_threshold
    before = state.consecutive if state.last == counted else 0
    consecutive = min(before + 1, threshold)
    reached = consecutive == threshold
    ends = _held(state, counted, reached=reached)
    asks = ends and counted == "failure" and bool(message.short_of)
    changes = reached and state.result != counted and not asks
    held = ends and not asks
    recovers = counted == "success" and (state.asked or state.unjudged > 0)
    news = changes or consecutive != before or not state.anchored or held or recovers
    if news or (_worries(message) and _reminds(state, now)):
        yield _counted(state, message, consecutive, threshold, held=held)
    if asks and not state.asked:
        yield _kill_asked(state, message, consecutive, threshold)
    if changes:
        yield prober.ResultChanged(
            result=counted,
            consecutive=consecutive,
            threshold=threshold,
            output=message.output,
            code=message.code,
            **_run(state),
            **_ref(state),
        )


def _unjudged(state: State, message: signals.ProbeOutcome) -> Event:
    """Return the event for an unjudged outcome. There is no limit here: the worker limits how many it sends."""
    return prober.ProbeUnjudged(
        id=state.id,
        at=message.at,
        milliseconds=message.milliseconds,
        consecutive=message.unjudged,
        for_milliseconds=message.unjudged_milliseconds,
        stalled_milliseconds=message.stalled_milliseconds,
        short_of=message.short_of,
        output=message.output,
        **_ref(state),
    )


def _kill_asked(state: State, message: signals.ProbeOutcome, consecutive: int, threshold: int) -> Event:
    return prober.KillAsked(
        consecutive=consecutive,
        threshold=threshold,
        short_of=message.short_of,
        output=message.output,
        code=message.code,
        **_run(state),
        **_ref(state),
    )


def _released(state: State, message: pleg.ProbeKillReleased) -> Iterator[Event]:
    """Yield the failure as the new result, provided that the kill was requested for the current run."""
    if state.asked and (state.id, state.started_at) == (message.id, message.started_at):
        threshold = state.definition.failure_threshold
        yield prober.ResultChanged(
            result="failure",
            consecutive=state.consecutive,
            threshold=threshold,
            output=state.output,
            code=state.code,
            **_run(state),
            **_ref(state),
        )


class _Counted(ProbeRef):
    id: str
    consecutive: int
    threshold: int
    at: int
    milliseconds: int
    output: str
    code: int | None
    held: bool


def _counted(state: State, message: signals.ProbeOutcome, consecutive: int, threshold: int, *, held: bool) -> Event:
    fields = _Counted(
        id=state.id,
        consecutive=consecutive,
        threshold=threshold,
        at=message.at,
        milliseconds=message.milliseconds,
        output=message.output,
        code=message.code,
        held=held,
        **_ref(state),
    )
    if counts_as(message.outcome) == "success":
        return prober.ProbeSucceeded(warning=message.outcome == "warning", **fields)
    return prober.ProbeFailed(unknown=message.outcome == "unknown", **fields)


def _held(state: State, counted: str, *, reached: bool) -> bool:
    """Whether probing of this container is complete, because it has started or must be killed."""
    return reached and (state.probe == "Startup" or (state.probe == "Liveness" and counted == "failure"))


def _worries(message: signals.ProbeOutcome) -> bool:
    return message.outcome != "success"


def _reminds(state: State, now: int) -> bool:
    """Whether REMINDER_MS have passed since a failure, unknown, warning or error was last recorded, or the clock was
    set back.
    """
    return not 0 <= now - state.told_at < REMINDER_MS


def _is_wanted(state: State, message: signals.ProbeOutcome | signals.ProbeLate) -> bool:
    return any(effect.intent == message.intent for effect in outstanding(state))


def _ref(state: State) -> ProbeRef:
    return ProbeRef(pod=state.pod, uid=state.uid, container=state.container, probe=state.probe)


def _run(state: State) -> RunRef:
    return RunRef(attempt=state.attempt, id=state.id, started_at=state.started_at)


def due(_state: State) -> None:
    """Return None: the worker schedules the probes."""


def outstanding(state: State) -> Sequence[Effect]:
    """Return RunProbe while the container must be probed; else nothing."""
    gate_open = state.started != (state.probe == "Startup")
    if not state.running or state.held or not gate_open:
        return ()
    return (
        wanted.RunProbe(
            subject="worker",
            intent=f"{state.id}/{state.started_at}/{state.change}",
            pod=state.pod,
            uid=state.uid,
            container=state.container,
            probe=state.probe,
            attempt=state.attempt,
            id=state.id,
            definition=state.definition,
            period_milliseconds=state.period_milliseconds,
            ip=state.ip,
            from_at=state.from_at,
            anchored=state.anchored,
            unjudged=state.unjudged,
            unjudged_milliseconds=state.unjudged_milliseconds,
        ),
    )


DECIDER = Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)
