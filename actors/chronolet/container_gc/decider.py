"""Decide when the collector of dead containers runs, and what it removes. Pure.

The collector has at most one run at a time. A run removes several objects concurrently.

Input: scans (listings of what exists) and removal results from `effects`; requests; events that start or end a pod, or
report a read of the manifest folder or a full disk. Output: events of `container_gc`, and the node's KubeEvents
ContainerGCFailed and EvictionThresholdMet. Next: `effects`, through `outstanding`.
Source: pkg/kubelet/kubelet.go (StartGarbageCollection), pkg/kubelet/kuberuntime/kuberuntime_gc.go.

    idle -> requested -> scanned -> running, `parallel` victims at a time -> idle
                         scanned -> idle, if there is nothing to remove
            requested -> idle, if the scan fails
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from chronolet.container_gc import signals, wanted
from chronolet.container_gc.evolve import after, evolve
from chronolet.container_gc.planning import plan
from chronolet.container_gc.planning.verdicts import Pods
from chronolet.container_gc.state import Reported, RequestedRun, Run, State
from chronolet.kernel.decider import Decider, Effect, EffectFailed
from chronolet.rules.names.aggregate import aggregate
from chronolet.rules.refs import VictimRef
from chronolet_schemas import container_gc, kernel, kube_events, manifests, pod
from chronolet_schemas.envelope import Event

_Result = signals.RemovalDone | signals.RemovalRefused | EffectFailed
_PodOver = pod.SandboxStopRequested | pod.CgroupReleased
_PodMessage = pod.SpecAccepted | pod.PodAdopted | _PodOver | pod.SandboxStartRequested | pod.PodEnded
ContainerGcMessage = (
    _Result
    | _PodMessage
    | signals.Looked
    | manifests.FolderRead
    | kernel.BallastGivenUp
    | container_gc.CollectContainers
)
"""Every message that the collector handles."""


def decide(state: State, message: ContainerGcMessage, now: int) -> Sequence[Event]:
    """See `Decider.decide`."""
    match message:
        case signals.Looked():
            return (*_settings(state, message), *_scanned(state, message, now))
        case signals.RemovalDone() | signals.RemovalRefused() | EffectFailed():
            return tuple(_removal_ended(state, message, now))
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


def _pod(state: State, message: _PodMessage) -> Sequence[Event]:
    """Track which pods exist and which have finished.

    A pod has finished when its sandbox is being stopped for good or its cgroup has been released. If a new sandbox is
    requested for it, it counts as unfinished again.
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
    """Request a run and record the KubeEvent that the kubelet's eviction manager records.

    If a run requested because of a full disk has not started yet, do nothing. Source:
    pkg/kubelet/eviction/eviction_manager.go (synchronize).
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


def _settings(state: State, scan: signals.CollectorSettings) -> Sequence[Event]:
    known = (state.node, state.policy, state.log_folder, state.log_run)
    if known == (scan.node, scan.policy, scan.log_folder, scan.log_run):
        return ()
    return (
        container_gc.PolicySet(node=scan.node, policy=scan.policy, log_folder=scan.log_folder, log_run=scan.log_run),
    )


def planned(
    state: State,
    scan: signals.Looked,
    now: int,
    trigger: container_gc.Trigger = "period",
    *,
    left_alone: bool = False,
) -> Sequence[plan.Judged]:
    """Plan a run that starts now, based on this scan.

    On a full disk, finished pods are collected too, as in the kubelet's eviction manager. `left_alone`: collect only
    objects that belong to a lost log.
    """
    pods = Pods(
        known=state.pods,
        terminated=state.finished,
        sources_ready=state.sources_ready,
        evict_terminated=trigger == "disk",
    )
    judge = plan.left_alone if left_alone else plan.judged
    return judge(scan, pods, scan.policy, now)


def _scanned(state: State, scan: signals.Looked, now: int) -> Sequence[Event]:
    """Start the run for which the scan was made, or finish it at once if there is nothing to remove. Ignore a scan that
    no run is waiting for.

    A periodic run that has nothing to remove and would repeat the last report is not recorded.
    """
    requested = _requested_run(state, scan.intent)
    if requested is None:
        return ()
    stages = planned(state, scan, now, requested.trigger, left_alone=requested.left_alone)
    victims, error = plan.victims(stages), aggregate(plan.errors(stages))
    run = Run(
        number=state.runs + 1,
        trigger=requested.trigger,
        request=requested.request,
        at=now,
        victims=victims,
        kept=dict(plan.kept(stages)),
        error=error,
    )
    if not victims:
        known = not error and run.trigger == "period" and state.reported == Reported(kept=run.kept)
        return () if known else tuple(_finished(run, scan.node, now))
    return (
        container_gc.RunStarted(
            run=run.number,
            trigger=run.trigger,
            request=run.request,
            at=now,
            victims=victims,
            kept=run.kept,
            error=error,
            parallel=max(scan.parallel, 1),
        ),
    )


def _requested_run(state: State, intent: str) -> RequestedRun | None:
    """Return the run that the scan with this intent belongs to; None if there is none.

    An empty intent belongs to a periodic run, which starts only if no other run is in progress or requested.
    """
    if state.run is not None:
        return None
    if intent:
        return state.asked[0] if state.asked and intent == _scan_intent(state.asked[0]) else None
    return None if state.asked else RequestedRun(number=0, trigger="period")


def _removal_ended(state: State, message: _Result, now: int) -> Iterator[Event]:
    if isinstance(message, EffectFailed) and state.run is None:
        yield from _scan_failed(state, message, now)
        return
    run = state.run
    if run is None:
        return
    index = next((one for one in run.turns() if message.intent == _intent(run, one)), None)
    if index is None:
        return
    error = "" if isinstance(message, signals.RemovalDone) else message.error
    outcome = _removal_event(run, run.victims[index], error)
    yield outcome
    run = after(run, outcome)
    for occupied in _occupied(run):
        outcome = _removal_event(run, occupied, "one of its containers could not be removed")
        yield outcome
        run = after(run, outcome)
    if run.over:
        yield from _finished(run, state.node, now)


def _occupied(run: Run) -> Sequence[container_gc.Victim]:
    """Return the sandboxes that must stay because one of their containers was not removed.

    Empty until the sandbox stage: only then is it known which containers stay.
    """
    rest = [run.victims[index] for index in range(run.next, len(run.victims)) if index not in run.ahead]
    if not rest or rest[0].what != "sandbox":
        return ()
    return [one for one in rest if one.what == "sandbox" and one.id in run.occupied]


def _scan_failed(state: State, message: EffectFailed, now: int) -> Iterator[Event]:
    """Record a requested run as finished, with the error, because its scan failed. Nothing is removed."""
    requested = _requested_run(state, message.intent)
    if requested is not None:
        run = Run(
            number=state.runs + 1,
            trigger=requested.trigger,
            request=requested.request,
            at=now,
            victims=(),
            error=message.error,
        )
        yield from _finished(run, state.node, now)


def _removal_event(run: Run, victim: container_gc.Victim, error: str) -> container_gc.Removed | container_gc.NotRemoved:
    ref: VictimRef = {
        "run": run.number,
        "what": victim.what,
        "id": victim.id,
        "name": victim.name,
        "pod": victim.pod,
        "uid": victim.uid,
        "rule": victim.rule,
    }
    return container_gc.NotRemoved(error=error, **ref) if error else container_gc.Removed(**ref)


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


def _scan_intent(requested: RequestedRun) -> str:
    return f"look/{requested.number}"


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
        return (period, wanted.Look(subject="run", intent=_scan_intent(state.asked[0])))
    return (period,)


DECIDER: Decider[State] = Decider(
    initial=State(), decide=decide, evolve=evolve, due=lambda _: None, outstanding=outstanding
)
