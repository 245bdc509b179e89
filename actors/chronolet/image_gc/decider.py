"""Track images, and decide when a collection runs and which images it removes. Pure.

The collector has at most one run at a time. A run removes one image after another.

Input: scans and removal results from `effects`, requests, events of a full disk. Output: events of `image_gc`, and
KubeEvents about the node. Next: `effects`, through `outstanding`. Source: pkg/kubelet/images/image_gc_manager.go.

    idle -> requested -> scanned -> running, one image at a time -> idle
                         scanned -> idle, if there is nothing to remove
            requested -> idle, if the scan fails
    running -> reading the disk usage again -> running or idle, after images over the maximum age were removed
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec.structs import replace

from chronolet.image_gc import signals, wanted
from chronolet.image_gc.evolve import after, evolve
from chronolet.image_gc.planning import ages, outcome, plan
from chronolet.image_gc.policy import collects
from chronolet.image_gc.state import Reported, RequestedRun, Run, State
from chronolet.kernel.decider import Decider, Effect, EffectFailed
from chronolet.rules.refs import CandidateRef
from chronolet_schemas import image_gc, kernel, kube_events
from chronolet_schemas.envelope import Event

_Result = signals.RemovalDone | signals.RemovalRefused | EffectFailed
SCAN_MILLISECONDS = 3_600_000
"""The longest time between two recorded scans on an idle node."""
ImageGcMessage = _Result | signals.Looked | kernel.BallastGivenUp | image_gc.CollectImages
"""Every message that the collector handles."""


def decide(state: State, message: ImageGcMessage, now: int) -> Sequence[Event]:
    """See `Decider.decide`."""
    match message:
        case signals.Looked():
            return tuple(_scanned(state, message, now))
        case signals.RemovalDone() | signals.RemovalRefused() | EffectFailed():
            return tuple(_removal_ended(state, message, now))
        case kernel.BallastGivenUp():
            waiting = any(one.trigger == "disk" for one in state.asked)
            return () if waiting else (image_gc.RunRequested(operation="collect", trigger="disk"),)
        case image_gc.CollectImages():
            operation: image_gc.Operation = "remove_unused" if message.unused else "collect"
            return (image_gc.RunRequested(operation=operation, trigger="request", request=message.request),)
        case _:
            assert_never(message)


def planned(state: State, scan: signals.Looked, operation: image_gc.Operation, now: int) -> plan.Plan:
    """Plan a run that starts now, based on this scan."""
    if scan.error:
        return plan.Plan(error=scan.error)
    known = seen(state, scan, now)
    return plan.judged(known, scan.policy, operation, scan.disk or signals.Disk(), now)


def seen(state: State, scan: signals.Looked, now: int) -> State:
    """Return the state with the changes found by the scan applied."""
    return functools.reduce(evolve, _news(state, scan, now), state)


def _scanned(state: State, scan: signals.Looked, now: int) -> Iterator[Event]:
    """Record the changes found by the scan; then start the run for which the scan was made, if any."""
    yield from _news(state, scan, now)
    requested = _requested_run(state, scan.intent) if scan.disk is not None else None
    if requested is not None:
        yield from _run(state, scan, requested, now)
    elif state.run is not None and state.run.reading and scan.intent == _read_intent(state.run):
        yield from _read_again(state, state.run, scan, now)


def _news(state: State, scan: signals.Looked, now: int) -> Iterator[Event]:
    if (state.node, state.policy) != (scan.node, scan.policy):
        yield image_gc.PolicySet(node=scan.node, policy=scan.policy)
    if ages.ahead(state, now):
        yield image_gc.TimesClamped(at=now)
        state = ages.clamped(state, now)
    if not scan.error:
        yield from ages.changes(state, scan, now)


def _requested_run(state: State, intent: str) -> RequestedRun | None:
    """Return the run that the scan with this intent belongs to; None if there is none.

    An empty intent belongs to a periodic run, which starts only if no other run is in progress or requested.
    """
    if state.run is not None:
        return None
    if intent:
        return state.asked[0] if state.asked and intent == _scan_intent(state.asked[0]) else None
    return None if state.asked else RequestedRun(number=0, operation="collect", trigger="period")


def _run(state: State, scan: signals.Looked, requested: RequestedRun, now: int) -> Iterator[Event]:
    found = planned(state, scan, requested.operation, now)
    old = tuple(one for one in found.going if one.reason == "age")
    kept = dict(found.kept())
    if later := len(found.going) + len(found.spare) - len(old) if old else 0:
        kept["not_tried"] = later
    run = Run(
        number=state.runs + 1,
        operation=requested.operation,
        trigger=requested.trigger,
        request=requested.request,
        at=now,
        capacity_bytes=found.disk.capacity_bytes,
        available_bytes=found.disk.available_bytes,
        usage_percent=found.usage_percent,
        wanted_bytes=found.wanted_bytes,
        candidates=old or (*found.going, *found.spare),
        kept=kept,
        error=found.error,
        read_again=bool(old),
    )
    if run.candidate is None:
        if not _is_known(state, run, scan.policy, now):
            yield from _finished(state, run, now)
        return
    yield image_gc.RunStarted(
        run=run.number,
        operation=run.operation,
        trigger=run.trigger,
        request=run.request,
        at=now,
        capacity_bytes=run.capacity_bytes,
        available_bytes=run.available_bytes,
        usage_percent=run.usage_percent,
        wanted_bytes=run.wanted_bytes,
        candidates=run.candidates,
        kept=run.kept,
        error=run.error,
        read_again=run.read_again,
    )


def _read_again(state: State, run: Run, scan: signals.Looked, now: int) -> Iterator[Event]:
    """Decide which images to remove to free space, based on the disk usage after the removal of images over the maximum
    age.
    """
    found = planned(state, scan, "collect", now)
    space = tuple(one for one in (*found.going, *found.spare) if one.reason == "space")
    read = image_gc.DiskReadAgain(
        run=run.number,
        capacity_bytes=found.disk.capacity_bytes,
        available_bytes=found.disk.available_bytes,
        usage_percent=found.usage_percent,
        wanted_bytes=found.wanted_bytes,
        candidates=space,
        kept=dict(found.kept()),
        error=found.error,
    )
    yield from _after_reading(state, run, read, now)


def _after_reading(state: State, run: Run, read: image_gc.DiskReadAgain, now: int) -> Iterator[Event]:
    yield read
    after_read = evolve(replace(state, run=run), read).run
    if after_read is not None and after_read.over:
        yield from _finished(state, after_read, now)


def _is_known(state: State, run: Run, policy: image_gc.Policy, now: int) -> bool:
    """Whether a run with nothing to remove repeats the last report and need not be recorded.

    Even so, one is recorded from time to time to keep ages correct after a restart: an image in use counts as used
    until the last recorded scan.
    """
    failed = outcome.error(run, policy.max_age_milliseconds)
    if failed or run.trigger != "period" or now - state.looked_at >= _most_between_scans(policy):
        return False
    return state.reported == Reported(usage_percent=run.usage_percent, kept=dict(outcome.kept(run)))


def _most_between_scans(policy: image_gc.Policy) -> int:
    """Return the longest time between two recorded scans, in milliseconds: at most a quarter of the maximum age."""
    most_age = policy.max_age_milliseconds
    return min(SCAN_MILLISECONDS, most_age // 4) if most_age else SCAN_MILLISECONDS


def _removal_ended(state: State, message: _Result, now: int) -> Iterator[Event]:
    run = state.run
    if run is None:
        if isinstance(message, EffectFailed):
            yield from _scan_failed(state, message, now)
        return
    if isinstance(message, EffectFailed) and run.reading and message.intent == _read_intent(run):
        yield from _after_reading(
            state, run, image_gc.DiskReadAgain(run=run.number, kept=run.kept, error=message.error), now
        )
        return
    if run.candidate is None or message.intent != _intent(run):
        return
    error = "" if isinstance(message, signals.RemovalDone) else message.error
    removal = _removal_event(run, run.candidate, error)
    yield removal
    run = after(run, removal)
    if run.over:
        yield from _finished(state, run, now)


def _scan_failed(state: State, message: EffectFailed, now: int) -> Iterator[Event]:
    """Record a requested run as finished, with the error, because its scan failed. Nothing is removed."""
    requested = _requested_run(state, message.intent)
    if requested is not None:
        run = Run(
            number=state.runs + 1,
            operation=requested.operation,
            trigger=requested.trigger,
            request=requested.request,
            at=now,
            error=message.error,
        )
        yield from _finished(state, run, now)


def _removal_event(
    run: Run, candidate: image_gc.Candidate, error: str
) -> image_gc.ImageRemoved | image_gc.ImageNotRemoved:
    ref: CandidateRef = {
        "run": run.number,
        "id": candidate.id,
        "name": candidate.name,
        "size_bytes": candidate.size_bytes,
        "reason": candidate.reason,
    }
    return image_gc.ImageNotRemoved(error=error, **ref) if error else image_gc.ImageRemoved(**ref)


def _finished(state: State, run: Run, now: int) -> Iterator[Event]:
    failure = outcome.error(run, state.policy.max_age_milliseconds if state.policy else 0)
    yield image_gc.RunFinished(
        run=run.number,
        operation=run.operation,
        trigger=run.trigger,
        request=run.request,
        at=now,
        milliseconds=max(now - run.at, 0),
        capacity_bytes=run.capacity_bytes,
        available_bytes=run.available_bytes,
        usage_percent=run.usage_percent,
        wanted_bytes=run.wanted_bytes,
        freed_bytes=run.freed_bytes,
        removed=run.removed,
        failed=len(run.errors),
        kept=dict(outcome.kept(run)),
        error=failure,
    )
    for reason, message in outcome.kube_event_texts(run, failure, state.failures):
        yield kube_events.Recorded(
            object_kind="Node", name=state.node, severity="Warning", reason=reason, message=message
        )


def _scan_intent(requested: RequestedRun) -> str:
    return f"look/{requested.number}"


def _read_intent(run: Run) -> str:
    return f"read/{run.number}"


def _intent(run: Run) -> str:
    return f"remove/{run.number}/{run.next}"


def outstanding(state: State) -> Sequence[Effect]:
    """See `Decider.outstanding`."""
    standing: list[Effect] = [wanted.WatchImages(subject="usage", intent="usage")]
    if state.policy is not None and collects(state.policy):
        standing.append(wanted.LookPeriodically(subject="period", intent="period"))
    if state.run is not None and state.run.candidate is not None:
        return (*standing, wanted.RemoveImage(subject="run", intent=_intent(state.run), id=state.run.candidate.id))
    if state.run is not None and state.run.reading:
        return (*standing, wanted.Look(subject="run", intent=_read_intent(state.run)))
    if state.asked:
        return (*standing, wanted.Look(subject="run", intent=_scan_intent(state.asked[0])))
    return standing


DECIDER: Decider[State] = Decider(
    initial=State(), decide=decide, evolve=evolve, due=lambda _: None, outstanding=outstanding
)
