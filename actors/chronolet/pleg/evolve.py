"""Applies pleg's events to its state. Pure; cannot fail.

Input: State, an event of the log. Output: the State after it. Next: `decider`, history.
"""

from __future__ import annotations

import immutables
from msgspec.structs import replace

from chronolet.pleg.probe_kills.evolve import probe_kills
from chronolet.pleg.state import Run, State, Unread
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Event


def evolve(state: State, event: Event) -> State:  # noqa: PLR0911 - a table
    """Return the state after `event`; events of other kinds change nothing."""
    match event:
        case pleg.ContainerEvent():
            return _container(state, event)
        case pleg.RelistWorking() | pleg.RelistFailing() | pleg.Unhealthy() | pleg.Healthy():
            return _health(state, event)
        case pleg.PodUnreadable() | pleg.PodReadable():
            return replace(state, unread=_unread(state, event))
        case pleg.ContainersAdopted() | pleg.EventsPutOff():
            return replace(state, anew=state.anew + 1)
        case pleg.StreamFollowed() | pleg.StreamLost():
            return _stream(state, event)
        case pleg.ProbeKillEvent() | pleg.ProbeTroubleNoted() | pleg.ProbeKillsHeldBack() | pleg.ProbeKillsResumed():
            return replace(state, probe_kills=probe_kills(state.probe_kills, event))
        case _:
            return state


def _stream(state: State, event: pleg.StreamFollowed | pleg.StreamLost) -> State:
    if isinstance(event, pleg.StreamFollowed):
        return replace(
            state,
            stream="followed",
            boot_id=event.boot_id or state.boot_id,
            endpoint=event.endpoint or state.endpoint,
            engine_id=event.engine_id if event.endpoint else state.engine_id,
        )
    return replace(state, stream="lost")


def _unread(state: State, event: pleg.PodUnreadable | pleg.PodReadable) -> immutables.Map[str, Unread]:
    if isinstance(event, pleg.PodUnreadable):
        return state.unread.set(event.uid, Unread(pod=event.pod, error=event.error))
    return state.unread.delete(event.uid)


def _health(state: State, event: pleg.RelistWorking | pleg.RelistFailing | pleg.Unhealthy | pleg.Healthy) -> State:
    match event:
        case pleg.RelistWorking():
            return replace(state, relist="working")
        case pleg.RelistFailing():
            return replace(
                state,
                relist="failing",
                listed_at=event.last_listed_at,
                threshold_milliseconds=event.threshold_milliseconds,
            )
        case _:
            return replace(state, unhealthy=isinstance(event, pleg.Unhealthy))


def _container(state: State, event: pleg.ContainerEvent) -> State:
    run = state.containers.get(event.id) or Run(
        pod=event.pod, uid=event.uid, container=event.container, attempt=event.attempt
    )
    match event:
        case pleg.ContainerStarted():
            run = replace(_next(run, event.started_at), state="running", unknown=False, finished_at=0)
        case pleg.ContainerDied():
            run = replace(_next(run, event.started_at), state="exited", unknown=False, finished_at=event.finished_at)
            state = replace(state, out_of_memory=state.out_of_memory - {event.id})
        case pleg.ContainerChanged(state="created"):
            run = replace(run, state="created", unknown=False)
        case pleg.ContainerChanged():
            run = replace(run, unknown=True)
        case pleg.OutOfMemory():
            return replace(state, out_of_memory=state.out_of_memory | {event.id})
        case _:
            return _forgotten(state, event.id)
    return replace(state, containers=state.containers.set(event.id, run))


def _next(run: Run, started_at: int) -> Run:
    """Return the run that started at `started_at`; if it is a new run, the known one becomes its predecessor."""
    before = run.before if started_at == run.started_at else run.started_at
    return replace(run, started_at=started_at, before=before)


def _forgotten(state: State, container_id: str) -> State:
    containers = state.containers
    if container_id in containers:
        containers = containers.delete(container_id)
    return replace(state, containers=containers, out_of_memory=state.out_of_memory - {container_id})
