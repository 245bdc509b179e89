"""Fold the container collector's events into its state. Pure. Next: `decider`, history."""

from __future__ import annotations

from msgspec.structs import replace

from chronolet.container_gc.state import Reported, RequestedRun, Run, State
from chronolet_schemas import container_gc
from chronolet_schemas.envelope import Event


def evolve(state: State, event: Event) -> State:
    """Return the state after one event; events of other kinds change nothing."""
    match event:
        case container_gc.PolicySet():
            return replace(
                state, node=event.node, policy=event.policy, log_folder=event.log_folder, log_run=event.log_run
            )
        case container_gc.PodNoted() | container_gc.PodFinished() | container_gc.PodForgotten():
            return _pod(state, event)
        case container_gc.SourcesReady():
            return replace(state, sources_ready=True)
        case container_gc.RunRequested():
            asked = RequestedRun(
                number=state.requests + 1,
                trigger=event.trigger,
                request=event.request,
                left_alone=event.left_alone,
            )
            return replace(state, requests=asked.number, asked=(*state.asked, asked))
        case container_gc.RunEvent():
            return _run(state, event)
        case _:
            return state


def _pod(state: State, event: container_gc.PodNoted | container_gc.PodFinished | container_gc.PodForgotten) -> State:
    uid = event.uid
    match event:
        case container_gc.PodNoted():
            return replace(state, pods=state.pods.set(uid, event.pod), finished=state.finished - {uid})
        case container_gc.PodFinished():
            return replace(state, finished=state.finished | {uid})
        case _:
            pods = state.pods.delete(uid) if uid in state.pods else state.pods
            return replace(state, pods=pods, finished=state.finished - {uid})


def _run(state: State, event: container_gc.RunEvent) -> State:
    match event:
        case container_gc.RunStarted():
            return replace(state, runs=event.run, run=_begun(event), asked=_without(state, event))
        case container_gc.RunFinished():
            reported = Reported(kept=event.kept, error=event.error)
            return replace(state, runs=event.run, run=None, asked=_without(state, event), reported=reported)
        case container_gc.Removed() | container_gc.NotRemoved() if state.run is not None:
            return replace(state, run=after(state.run, event))
        case _:
            return state


def _begun(event: container_gc.RunStarted) -> Run:
    return Run(
        number=event.run,
        trigger=event.trigger,
        request=event.request,
        at=event.at,
        victims=event.victims,
        kept=event.kept,
        error=event.error,
        parallel=event.parallel,
    )


def _without(state: State, event: container_gc.RunStarted | container_gc.RunFinished) -> tuple[RequestedRun, ...]:
    """Return the requested runs that remain after one has started or finished."""
    return tuple(
        one
        for index, one in enumerate(state.asked)
        if index or (one.trigger, one.request) != (event.trigger, event.request)
    )


def after(run: Run, event: container_gc.Removed | container_gc.NotRemoved) -> Run:
    """Return the run with the outcome of one of its removals applied."""
    index = _index(run, event)
    if index is None:
        return run
    done = run.ahead | {index}
    upto = run.next
    while upto in done:
        upto += 1
    run = replace(run, next=upto, ahead=frozenset(one for one in done if one > upto))
    if isinstance(event, container_gc.Removed):
        return replace(run, removed=run.removed + 1)
    sandbox = run.victims[index].sandbox_id
    occupied = run.occupied | {sandbox} if sandbox else run.occupied
    return replace(run, failed=run.failed + 1, occupied=occupied)


def _index(run: Run, event: container_gc.Removed | container_gc.NotRemoved) -> int | None:
    """Return the index of the victim that the event is about; None if its outcome is known or it is not in the run."""
    for index in range(run.next, len(run.victims)):
        one = run.victims[index]
        if (one.id, one.what) == (event.id, event.what):
            return None if index in run.ahead else index
    return None
