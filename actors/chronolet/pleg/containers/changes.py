"""Derives the events of one observation of a container from the state before it. Pure.

Input: State, an observation. Output: events of `pleg`; none if the observation is already known or outdated. Next:
`decider`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec.structs import replace

from chronolet.pleg import signals
from chronolet.pleg.containers.runs import is_news
from chronolet.pleg.containers.transitions import Phase, computed
from chronolet.pleg.state import Run, State
from chronolet.rules.refs import ContainerRef
from chronolet_schemas import pleg

_KILLED = 137
"""Exit code after SIGKILL; the kubelet also reports it when the exit code is unknown."""


def changes(state: State, observed: Sequence[signals.ContainerObserved]) -> Iterator[pleg.ContainerEvent]:
    """Yield the events of these observations, each compared with the same state."""
    for one in observed:
        yield from change(state, one)


def change(state: State, observed: signals.ContainerObserved) -> Iterator[pleg.ContainerEvent]:
    """Yield the events of one observation, compared with the state before the message."""
    run = state.containers.get(observed.id)
    if not is_news(run, observed):
        return
    if run is not None:
        # A removed container has no labels left to read, so its identity comes from the state.
        observed = replace(observed, pod=run.pod, uid=run.uid, container=run.container, attempt=run.attempt)
    ref, after = _ref(observed), _after(observed)
    # A new run of the same container may be in the same state as the run before it.
    for happened in computed(_before(run), after) or computed("absent", after):
        match happened:
            case "started":
                yield pleg.ContainerStarted(started_at=observed.started_at, **ref)
            case "died":
                yield _died(state, run, observed, ref)
            case "removed":
                yield pleg.ContainerRemoved(**ref)
            case "changed":
                yield pleg.ContainerChanged(state=observed.state, **ref)
            case _:
                assert_never(happened)


def oom_killed(state: State, signal: signals.OomKilled) -> Iterator[pleg.ContainerEvent]:
    """Yield the event for an OOM kill in a known container, once per run."""
    if signal.id in state.containers and signal.id not in state.out_of_memory:
        yield pleg.OutOfMemory(**_ref(signal))


def _before(run: Run | None) -> Phase:
    if run is None:
        return "absent"
    return "unknown" if run.unknown or not run.state else run.state


def _after(observed: signals.ContainerObserved) -> Phase:
    return "absent" if observed.state == "removed" else observed.state


def _died(state: State, run: Run | None, observed: signals.ContainerObserved, ref: ContainerRef) -> pleg.ContainerEvent:
    # A removed container has no exit code: report the kubelet's number, with a reason that marks it as unknown.
    gone = observed.state == "removed"
    return pleg.ContainerDied(
        exit_code=_KILLED if gone else observed.exit_code,
        reason="ContainerStatusUnknown" if gone else _reason(state, observed),
        started_at=observed.started_at or (run.started_at if run else 0),
        finished_at=observed.finished_at,
        sent=observed.sent,
        sent_at=observed.sent_at,
        **ref,
    )


def _reason(state: State, observed: signals.ContainerObserved) -> str:
    if observed.exit_code == _KILLED and observed.id in state.out_of_memory:
        return "OOMKilled"
    return observed.reason or ("Completed" if observed.exit_code == 0 else "Error")


def _ref(signal: signals.ContainerObserved | signals.OomKilled) -> ContainerRef:
    return ContainerRef(
        pod=signal.pod, uid=signal.uid, container=signal.container, attempt=signal.attempt, id=signal.id
    )
