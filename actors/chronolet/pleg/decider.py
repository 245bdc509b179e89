"""What runs: notices and listings of the runtime become facts. Pure.

Comes in: `signals` of the two standing effects, and what ran before the log (`pleg.AdoptContainers`). Goes out: events
of `pleg`. Next: `pod`, the prober, the collectors.
Source: pkg/kubelet/pleg/generic.go, evented.go. A signal that tells nothing new yields nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from msgspec import structs
from msgspec.structs import replace

from chronolet.kernel.decider import Decider, Effect
from chronolet.pleg import signals, wanted
from chronolet.pleg.runs import is_news
from chronolet.pleg.state import Run, State
from chronolet.pleg.transitions import Seen as SeenState
from chronolet.pleg.transitions import computed
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Event

_KILLED = 137
"""Exit code of what a KILL ended; also what the kubelet writes where nobody knows the exit code."""

_SaidOfEach = signals.Noticed | signals.Relisted | pleg.AdoptContainers
Said = _SaidOfEach | signals.StreamOpened | signals.StreamBroken | signals.RelistFailed
"""All that pleg is told."""


def decide(state: State, message: Said, _now: int) -> Sequence[Event]:
    """The facts that are new in a signal."""
    match message:
        case signals.Noticed() | signals.Relisted() | pleg.AdoptContainers():
            return _of_each(state, message)
        case signals.RelistFailed():
            return () if state.relist == "failing" else (pleg.RelistFailing(error=message.error),)
        case signals.StreamOpened():
            return (pleg.StreamFollowed(server=message.server),)
        case signals.StreamBroken():
            return () if state.stream == "lost" else (pleg.StreamLost(error=message.error),)
        case _:
            assert_never(message)


def _of_each(state: State, message: _SaidOfEach) -> Sequence[Event]:
    match message:
        case signals.Noticed():
            return tuple(_noticed(state, message))
        case signals.Relisted():
            return (*_relist_works(state, message), *_all_news(state, message.seen))
        case _:
            seen = tuple(signals.Seen(state="running", **structs.asdict(one)) for one in message.running)
            return (*_all_news(state, seen), pleg.ContainersAdopted(running=len(seen)))


def _noticed(state: State, notice: signals.Noticed) -> Iterator[Event]:
    if notice.action == "oom":
        if notice.id in state.containers and notice.id not in state.out_of_memory:
            yield pleg.OutOfMemory(**_who(notice))
    elif notice.action != "create":
        # What is created is about to start: its start is the news. One that never starts is found by the relist.
        yield from _news(state, _as_seen(notice))


def _relist_works(state: State, message: signals.Relisted) -> Sequence[Event]:
    return () if state.relist == "working" else (pleg.RelistWorking(containers=message.count),)


def _as_seen(notice: signals.Noticed) -> signals.Seen:
    """A notice as the state that it tells of."""
    match notice.action:
        case "start":
            return signals.Seen(
                state="running", started_at=notice.started_at or notice.at, detailed=False, **_who(notice)
            )
        case "die":
            return signals.Seen(
                state="exited",
                exit_code=notice.exit_code,
                started_at=notice.started_at,
                finished_at=notice.finished_at or notice.at,
                **_who(notice),
            )
        case _:
            return signals.Seen(state="removed", **_who(notice))


def _all_news(state: State, seen: Sequence[signals.Seen]) -> Iterator[Event]:
    for one in seen:
        yield from _news(state, one)


def _news(state: State, seen: signals.Seen) -> Iterator[Event]:
    """The events of one claim about one container, against what was known before the message."""
    run = state.containers.get(seen.id)
    if not is_news(run, seen):
        return
    if run is not None:
        # What is gone has no labels to ask: its identity is the one that was written down.
        seen = replace(seen, pod=run.pod, uid=run.uid, container=run.container, attempt=run.attempt)
    who, after = _who(seen), _after(seen)
    # A new run of the same id may be found in the very state of the last one.
    for word in computed(_before(run), after) or computed("absent", after):
        match word:
            case "started":
                yield pleg.ContainerStarted(started_at=seen.started_at, **who)
            case "died":
                yield _died(state, run, seen, who)
            case "removed":
                yield pleg.ContainerRemoved(**who)
            case "changed":
                yield pleg.ContainerChanged(state=seen.state, **who)
            case _:
                assert_never(word)


def _before(run: Run | None) -> SeenState:
    if run is None:
        return "absent"
    return "unknown" if run.unknown or not run.state else run.state


def _after(seen: signals.Seen) -> SeenState:
    return "absent" if seen.state == "removed" else seen.state


def _died(state: State, run: Run | None, seen: signals.Seen, who: dict[str, Any]) -> Event:
    # Absence is no exit code: the number is what the kubelet shows, the reason says that nobody knows.
    gone = seen.state == "removed"
    return pleg.ContainerDied(
        exit_code=_KILLED if gone else seen.exit_code,
        reason="ContainerStatusUnknown" if gone else _reason(state, seen),
        started_at=seen.started_at or (run.started_at if run else 0),
        finished_at=seen.finished_at,
        **who,
    )


def _reason(state: State, seen: signals.Seen) -> str:
    if seen.exit_code == _KILLED and seen.id in state.out_of_memory:
        return "OOMKilled"
    return seen.reason or ("Completed" if seen.exit_code == 0 else "Error")


def _who(message: signals.Seen | signals.Noticed) -> dict[str, Any]:
    return {
        "pod": message.pod,
        "uid": message.uid,
        "container": message.container,
        "attempt": message.attempt,
        "id": message.id,
    }


def evolve(state: State, event: Event) -> State:
    """The state after one of pleg's events; others change nothing."""
    match event:
        case pleg.ContainerEvent():
            return _container(state, event)
        case pleg.ContainersAdopted():
            return replace(state, adopted=state.adopted + 1)
        case pleg.StreamFollowed() | pleg.StreamLost():
            return replace(state, stream="followed" if isinstance(event, pleg.StreamFollowed) else "lost")
        case pleg.RelistWorking() | pleg.RelistFailing():
            return replace(state, relist="working" if isinstance(event, pleg.RelistWorking) else "failing")
        case _:
            return state


def _container(state: State, event: pleg.ContainerEvent) -> State:
    run = state.containers.get(event.id) or Run(
        pod=event.pod, uid=event.uid, container=event.container, attempt=event.attempt
    )
    match event:
        case pleg.ContainerStarted():
            run = replace(run, state="running", unknown=False, started_at=event.started_at, finished_at=0)
        case pleg.ContainerDied():
            run = replace(
                run, state="exited", unknown=False, started_at=event.started_at, finished_at=event.finished_at
            )
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


def _forgotten(state: State, container_id: str) -> State:
    containers = state.containers
    if container_id in containers:
        containers = containers.delete(container_id)
    return replace(state, containers=containers, out_of_memory=state.out_of_memory - {container_id})


def due(_state: State) -> int | None:
    """Nothing here waits: looking again is the standing effects' business."""
    return None


def outstanding(state: State) -> Sequence[Effect]:
    """The two standing effects, always."""
    return (
        wanted.FollowRuntime(subject="stream", intent="follow"),
        wanted.Relist(subject="relist", intent=f"relist/{state.adopted}", known=tuple(sorted(state.containers))),
    )


DECIDER = Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)
