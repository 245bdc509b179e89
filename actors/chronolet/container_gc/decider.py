"""When containers are collected, and which: one run at a time, several of its objects at a time. Pure.

Comes in: looks of `effects`, requests, the beginnings and ends of pods. Goes out: events of `container_gc`, and the
node's KubeEvent ContainerGCFailed. Next: `effects`, by what is outstanding. Source:
pkg/kubelet/kubelet.go (StartGarbageCollection), pkg/kubelet/kuberuntime/kuberuntime_gc.go.

    idle -> asked for -> looked -> running, `parallel` victims at a time -> idle (at once with nothing to remove)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from chronolet.container_gc import plan, signals, wanted
from chronolet.container_gc.evolve import after, evolve
from chronolet.container_gc.state import Asked, Reported, Run, State
from chronolet.container_gc.verdicts import Pods
from chronolet.kernel.decider import Decider, Effect, EffectFailed
from chronolet.rules.names.aggregate import aggregate
from chronolet_schemas import container_gc, kernel, kube_events, manifests, pod
from chronolet_schemas.envelope import Event

_Answer = signals.RemovalDone | signals.RemovalRefused | EffectFailed
_Over = pod.SandboxStopRequested | pod.CgroupReleased
_PodNews = pod.SpecAccepted | pod.PodAdopted | _Over | pod.SandboxStartRequested | pod.PodEnded
Said = (
    _Answer | _PodNews | signals.Looked | manifests.FolderRead | kernel.BallastGivenUp | container_gc.CollectContainers
)
"""All that the collector is told."""


def decide(state: State, message: Said, now: int) -> Sequence[Event]:
    """See `Decider.decide`."""
    match message:
        case signals.Looked():
            return (*_settings(state, message), *_looked(state, message, now))
        case signals.RemovalDone() | signals.RemovalRefused() | EffectFailed():
            return tuple(_answered(state, message, now))
        case pod.PodEvent():
            return _pod(state, message)
        case manifests.FolderRead():
            return () if state.sources_ready else (container_gc.SourcesReady(),)
        case kernel.BallastGivenUp():
            return tuple(_disk_full(state))
        case container_gc.CollectContainers():
            return (
                container_gc.RunRequested(trigger="request", request=message.request, left_alone=message.left_alone),
            )
        case _:
            assert_never(message)


def _pod(state: State, message: _PodNews) -> Sequence[Event]:
    """A pod that needs no sandbox any more, or gives back its share of the node, is over; one that gets a sandbox after
    that has begun again.
    """
    known, finished = message.uid in state.pods, message.uid in state.finished
    match message:
        case pod.PodEnded():
            return (container_gc.PodForgotten(pod=message.pod, uid=message.uid),) if known else ()
        case pod.SandboxStopRequested(finished=False):
            return ()
        case pod.SandboxStopRequested() | pod.CgroupReleased():
            news = known and not finished
            return (container_gc.PodFinished(pod=message.pod, uid=message.uid),) if news else ()
        case pod.SandboxStartRequested():
            return (container_gc.PodNoted(pod=message.pod, uid=message.uid),) if finished else ()
        case _:
            return () if known else (container_gc.PodNoted(pod=message.pod, uid=message.uid),)


def _disk_full(state: State) -> Iterator[Event]:
    """One run, and the word that the kubelet's eviction manager has for it; told once where it is heard of again before
    the run has begun. Source: pkg/kubelet/eviction/eviction_manager.go (synchronize).
    """
    if any(one.trigger == "disk" for one in state.asked):
        return
    yield container_gc.RunRequested(trigger="disk")
    if state.node:
        yield kube_events.Recorded(
            object_kind="Node",
            name=state.node,
            severity="Warning",
            reason="EvictionThresholdMet",
            message="Attempting to reclaim ephemeral-storage",
        )


def _settings(state: State, look: signals.Told) -> Sequence[Event]:
    known = (state.node, state.policy, state.log_folder, state.log_run)
    if known == (look.node, look.policy, look.log_folder, look.log_run):
        return ()
    return (
        container_gc.PolicySet(node=look.node, policy=look.policy, log_folder=look.log_folder, log_run=look.log_run),
    )


def planned(
    state: State,
    look: signals.Looked,
    now: int,
    trigger: container_gc.Trigger = "period",
    *,
    left_alone: bool = False,
) -> Sequence[plan.Judged]:
    """What a run would do that begins now, after this look. A full disk takes what finished pods have left, as the
    kubelet's eviction manager does. `left_alone`: the run is for what was made for a log that was lost.
    """
    pods = Pods(
        known=state.pods,
        terminated=state.finished,
        sources_ready=state.sources_ready,
        evict_terminated=trigger == "disk",
    )
    judge = plan.left_alone if left_alone else plan.judged
    return judge(look, pods, look.policy, now)


def _looked(state: State, look: signals.Looked, now: int) -> Sequence[Event]:
    """A run follows from the look, unless it is one that nobody waits for.

    A periodic run that has nothing to remove and finds what the last one reported is no news, and is not written down.
    """
    asked = _asked(state, look.intent)
    if asked is None:
        return ()
    stages = planned(state, look, now, asked.trigger, left_alone=asked.left_alone)
    victims, error = plan.victims(stages), aggregate(plan.errors(stages))
    run = Run(
        number=state.runs + 1,
        trigger=asked.trigger,
        request=asked.request,
        at=now,
        victims=victims,
        kept=dict(plan.kept(stages)),
        error=error,
    )
    if not victims:
        known = not error and run.trigger == "period" and state.reported == Reported(kept=run.kept)
        return () if known else tuple(_finished(run, look.node, now))
    return (
        container_gc.RunStarted(
            run=run.number,
            trigger=run.trigger,
            request=run.request,
            at=now,
            victims=victims,
            kept=run.kept,
            error=error,
            parallel=max(look.parallel, 1),
        ),
    )


def _asked(state: State, intent: str) -> Asked | None:
    """What the look is for: a run that was asked for, or the periodic one while nothing else is to be done."""
    if state.run is not None:
        return None
    if intent:
        return state.asked[0] if state.asked and intent == _look_intent(state.asked[0]) else None
    return None if state.asked else Asked(number=0, trigger="period")


def _answered(state: State, message: _Answer, now: int) -> Iterator[Event]:
    if isinstance(message, EffectFailed) and state.run is None:
        yield from _look_failed(state, message, now)
        return
    run = state.run
    if run is None:
        return
    index = next((one for one in run.turns() if message.intent == _intent(run, one)), None)
    if index is None:
        return
    error = "" if isinstance(message, signals.RemovalDone) else message.error
    dealt = _dealt_with(run, run.victims[index], error)
    yield dealt
    run = after(run, dealt)
    for occupied in _occupied(run):
        dealt = _dealt_with(run, occupied, "a container of it could not be removed")
        yield dealt
        run = after(run, dealt)
    if run.over:
        yield from _finished(run, state.node, now)


def _occupied(run: Run) -> Sequence[container_gc.Victim]:
    """The sandboxes that have to stay, once their turn has come: whether a container stays is known then."""
    rest = [run.victims[index] for index in range(run.next, len(run.victims)) if index not in run.ahead]
    if not rest or rest[0].what != "sandbox":
        return ()
    return [one for one in rest if one.what == "sandbox" and one.id in run.occupied]


def _look_failed(state: State, message: EffectFailed, now: int) -> Iterator[Event]:
    """A look that was asked for did not come to its end: the run is over before it began."""
    asked = _asked(state, message.intent)
    if asked is not None:
        run = Run(
            number=state.runs + 1,
            trigger=asked.trigger,
            request=asked.request,
            at=now,
            victims=(),
            error=message.error,
        )
        yield from _finished(run, state.node, now)


def _dealt_with(run: Run, victim: container_gc.Victim, error: str) -> container_gc.Removed | container_gc.NotRemoved:
    who: dict[str, Any] = {
        "run": run.number,
        "what": victim.what,
        "id": victim.id,
        "name": victim.name,
        "pod": victim.pod,
        "uid": victim.uid,
        "rule": victim.rule,
    }
    return container_gc.NotRemoved(error=error, **who) if error else container_gc.Removed(**who)


def _finished(run: Run, node: str, now: int) -> Iterator[Event]:
    yield container_gc.RunFinished(
        run=run.number,
        trigger=run.trigger,
        request=run.request,
        at=now,
        milliseconds=max(now - run.at, 0),
        removed=run.removed,
        failed=run.failed,
        kept=run.kept,
        error=run.error,
    )
    if run.error:
        yield kube_events.Recorded(
            object_kind="Node", name=node, severity="Warning", reason="ContainerGCFailed", message=run.error
        )


def _look_intent(asked: Asked) -> str:
    return f"look/{asked.number}"


def _intent(run: Run, index: int) -> str:
    return f"remove/{run.number}/{index}"


def _removal(run: Run, index: int) -> wanted.Remove:
    return wanted.Remove(subject=f"remove/{index}", intent=_intent(run, index), victim=run.victims[index])


def outstanding(state: State) -> Sequence[Effect]:
    """See `Decider.outstanding`."""
    period = wanted.LookPeriodically(subject="period", intent="period")
    if state.run is not None:
        return (period, *(_removal(state.run, index) for index in state.run.turns()))
    if state.asked:
        return (period, wanted.Look(subject="run", intent=_look_intent(state.asked[0])))
    return (period,)


DECIDER: Decider[State] = Decider(
    initial=State(), decide=decide, evolve=evolve, due=lambda _: None, outstanding=outstanding
)
