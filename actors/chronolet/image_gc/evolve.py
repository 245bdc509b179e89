"""Fold the image collector's events into its state. Pure. Next: `decider`, history."""

from __future__ import annotations

from msgspec.structs import replace

from chronolet.image_gc.planning.ages import clamped, recorded
from chronolet.image_gc.state import Reported, RequestedRun, Run, State
from chronolet_schemas import image_gc
from chronolet_schemas.envelope import Event


def evolve(state: State, event: Event) -> State:
    """Return the state after one event; events of other kinds change nothing."""
    match event:
        case image_gc.PolicySet():
            return replace(state, node=event.node, policy=event.policy)
        case image_gc.ImagesChanged():
            return _changed(state, event)
        case image_gc.TimesClamped():
            return clamped(state, event.at)
        case image_gc.RunRequested():
            number = state.requests + 1
            asked = RequestedRun(number=number, operation=event.operation, trigger=event.trigger, request=event.request)
            return replace(state, requests=number, asked=(*state.asked, asked))
        case image_gc.RunEvent():
            return _run(state, event)
        case _:
            return state


def _changed(state: State, event: image_gc.ImagesChanged) -> State:
    records = state.records.mutate()
    for image in event.seen:
        records[image.id] = recorded(state.records.get(image.id), image, event)
    for gone in event.gone:
        records.pop(gone, None)
    return replace(state, began_at=state.began_at or event.at, looked_at=event.at, records=records.finish())


def _run(state: State, event: image_gc.RunEvent) -> State:
    match event:
        case image_gc.RunStarted():
            return replace(state, runs=event.run, looked_at=event.at, run=_begun(event), asked=_without(state, event))
        case image_gc.RunFinished():
            # A run without removals is recorded by this event only, so it counts as a scan.
            looked_at = event.at if state.run is None and not event.error else state.looked_at
            failures, asked = _failures(state, event), _without(state, event)
            reported = Reported(usage_percent=event.usage_percent, kept=event.kept, error=event.error)
            return replace(
                state,
                runs=event.run,
                run=None,
                looked_at=looked_at,
                failures=failures,
                asked=asked,
                reported=reported,
            )
        case image_gc.DiskReadAgain() if state.run is not None:
            return replace(state, run=_read_again(state.run, event))
        case image_gc.ImageRemoved() | image_gc.ImageNotRemoved() if state.run is not None:
            records = state.records
            if isinstance(event, image_gc.ImageRemoved) and event.id in records:
                records = records.delete(event.id)
            return replace(state, records=records, run=after(state.run, event))
        case _:
            return state


def _failures(state: State, event: image_gc.RunFinished) -> int:
    if event.trigger != "period":
        return state.failures
    return state.failures + 1 if event.error else 0


def _begun(event: image_gc.RunStarted) -> Run:
    return Run(
        number=event.run,
        operation=event.operation,
        trigger=event.trigger,
        request=event.request,
        at=event.at,
        capacity_bytes=event.capacity_bytes,
        available_bytes=event.available_bytes,
        usage_percent=event.usage_percent,
        wanted_bytes=event.wanted_bytes,
        candidates=event.candidates,
        kept=event.kept,
        error=event.error,
        read_again=event.read_again,
    )


def _read_again(run: Run, event: image_gc.DiskReadAgain) -> Run:
    return replace(
        run,
        wanted_bytes=event.wanted_bytes,
        candidates=(*run.candidates[: run.next], *event.candidates),
        kept=event.kept,
        error=event.error,
        read_again=False,
    )


def _without(state: State, event: image_gc.RunStarted | image_gc.RunFinished) -> tuple[RequestedRun, ...]:
    """Return the requested runs that remain after one has started or finished."""
    return tuple(
        one
        for index, one in enumerate(state.asked)
        if index or (one.trigger, one.request) != (event.trigger, event.request)
    )


def after(run: Run, event: image_gc.ImageRemoved | image_gc.ImageNotRemoved) -> Run:
    """Return the run with the outcome of one of its removals applied."""
    if isinstance(event, image_gc.ImageRemoved):
        size, for_space = event.size_bytes, event.reason == "space"
        return replace(
            run,
            next=run.next + 1,
            removed=run.removed + 1,
            freed_bytes=run.freed_bytes + size,
            freed_for_space_bytes=run.freed_for_space_bytes + (size if for_space else 0),
        )
    return replace(
        run,
        next=run.next + 1,
        errors=(*run.errors, event.error),
        failed_for_age=run.failed_for_age or event.reason == "age",
    )
