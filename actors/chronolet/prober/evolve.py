"""Applies a probe's events to its state. Pure; validates nothing and cannot fail.

Input: State, an event of the log. Output: the State after it, or None when the probe is removed. Next: `decider`,
history.
"""

from __future__ import annotations

from msgspec.structs import replace

from chronolet.prober.state import State
from chronolet_schemas import prober
from chronolet_schemas.envelope import Event


def evolve(state: State, event: Event) -> State | None:
    """Return the state after `event`; events of other kinds change nothing."""
    match event:
        case prober.ProbeRemoved():
            return None
        case prober.ProbeAdded():
            return _added(state, event)
        case prober.ProbingBegan():
            return _began(state, event)
        case prober.ProbeCounted():
            return _counted(state, event)
        case _:
            return _otherwise(state, event)


def _added(state: State, event: prober.ProbeAdded) -> State:
    before = state if state.uid == event.uid else State()
    return replace(
        before,
        pod=event.pod,
        uid=event.uid,
        container=event.container,
        probe=event.probe,
        definition=event.definition,
        restarts=event.restarts,
        period_milliseconds=event.period_milliseconds,
        field=event.field,
        change=event.change,
    )


def _began(state: State, event: prober.ProbingBegan) -> State:
    """Begin to probe a new container, or a new run of the same one. The streak continues across containers, as in the
    kubelet.
    """
    return replace(
        state,
        attempt=event.attempt,
        id=event.id,
        started_at=event.started_at,
        ip=event.ip,
        from_at=event.from_at,
        anchored=False,
        running=True,
        started=event.started,
        held=False,
        result="",
        unjudged=0,
        unjudged_milliseconds=0,
        asked=False,
    )


def _otherwise(state: State, event: Event) -> State:  # noqa: PLR0911 - a table
    match event:
        case prober.GateOpened():
            return replace(state, started=True, from_at=event.from_at)
        case prober.ResultChanged():
            return _changed(state, event)
        case prober.ProbingPaused() | prober.ProbingEnded():
            return replace(state, running=False)
        case prober.KillAsked() | prober.KillWithdrawn():
            return replace(state, asked=isinstance(event, prober.KillAsked))
        case prober.ProbeUnjudged():
            return replace(state, unjudged=event.consecutive, unjudged_milliseconds=event.for_milliseconds)
        case prober.ProbeErrored():
            return replace(state, errored=True, told_at=event.at, output=event.output, code=None, at=event.at)
        case _:
            return state


def _changed(state: State, event: prober.ResultChanged) -> State:
    """Set the result. A released kill ends the probing of this container, as reaching a threshold usually does."""
    if state.asked and event.result == "failure":
        return replace(state, result=event.result, asked=False, held=True, consecutive=0)
    return replace(state, result=event.result)


def _counted(state: State, event: prober.ProbeCounted) -> State:
    failed = isinstance(event, prober.ProbeFailed)
    warned = isinstance(event, prober.ProbeSucceeded) and event.warning
    return replace(
        state,
        last="failure" if failed else "success",
        consecutive=0 if event.held else event.consecutive,
        held=event.held,
        from_at=state.from_at if state.anchored else event.at,
        anchored=True,
        output=event.output,
        code=event.code,
        at=event.at,
        told_at=event.at if failed or warned else state.told_at,
        errored=False,
        unjudged=state.unjudged if failed else 0,
        unjudged_milliseconds=state.unjudged_milliseconds if failed else 0,
    )
