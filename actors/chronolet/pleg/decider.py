"""What runs: notices and listings of the runtime become facts. Pure.

Comes in: `signals` of the two standing effects, and what ran before the log (`pleg.AdoptContainers`). Goes out: events
of `pleg`. Next: `pod`, the prober, the collectors.
Liveness and startup kills that wait are here as well, for a node has one pleg: `holding_back`.
Source: pkg/kubelet/pleg/generic.go, evented.go. A signal that tells nothing new yields nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from msgspec import structs
from msgspec.structs import replace

from chronolet.kernel.decider import Decider, Due, Effect
from chronolet.pleg import holding_back, signals, wanted
from chronolet.pleg.evolve import evolve
from chronolet.pleg.health import ill_from, illness
from chronolet.pleg.holding_back import Policy
from chronolet.pleg.runs import is_news
from chronolet.pleg.state import Run, State
from chronolet.pleg.telling import tell
from chronolet.pleg.transitions import Seen as SeenState
from chronolet.pleg.transitions import computed
from chronolet_schemas import pleg, prober
from chronolet_schemas.envelope import Event

_KILLED = 137
"""Exit code of what a KILL ended; also what the kubelet writes where nobody knows the exit code."""

MOST_EVENTS = 1000
"""What one listing may tell at once, as many as the kubelet's channel holds. There the rest is lost."""

_SaidOfEach = signals.Noticed | signals.Relisted | pleg.AdoptContainers
Said = _SaidOfEach | signals.StreamOpened | signals.StreamBroken | signals.RelistFailed | holding_back.Heard | Due
"""All that pleg is told."""


def decide(node: str, policy: Policy, state: State, message: Said, now: int) -> Sequence[Event]:
    """The facts that are new in a signal, each with what the kubelet tells because of it."""
    return tuple(one for event in _facts(policy, state, message, now) for one in (event, *tell(node, state, event)))


def _facts(policy: Policy, state: State, message: Said, now: int) -> Sequence[Event]:
    match message:
        case prober.ProbeUnjudged() | prober.KillAsked() | prober.KillWithdrawn():
            return holding_back.heard(policy, state.probe_kills, message, now)
        case signals.Noticed() | signals.Relisted() | pleg.AdoptContainers():
            return _of_each(state, message)
        case signals.RelistFailed():
            return () if state.relist == "failing" else tuple(_relist_fails(message, now))
        case Due():
            return tuple(_rings(policy, state, max(now, message.at)))
        case signals.StreamOpened():
            return (_followed(message),)
        case signals.StreamBroken():
            return () if state.stream == "lost" else (pleg.StreamLost(error=message.error),)
        case _:
            assert_never(message)


def _of_each(state: State, message: _SaidOfEach) -> Sequence[Event]:
    match message:
        case signals.Noticed():
            return tuple(_noticed(state, message))
        case signals.Relisted():
            works = () if message.partial else _relist_works(state, message)
            return (*works, *_listing_news(state, message))
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


def _followed(message: signals.StreamOpened) -> pleg.StreamFollowed:
    return pleg.StreamFollowed(
        server=message.server,
        first=message.first,
        boot_id=message.boot_id,
        endpoint=message.endpoint,
        engine_id=message.engine_id,
    )


def _relist_works(state: State, message: signals.Relisted) -> Iterator[Event]:
    if state.relist != "working":
        yield pleg.RelistWorking(containers=message.count)
    if state.unhealthy:
        yield pleg.Healthy()


def _relist_fails(message: signals.RelistFailed, now: int) -> Iterator[Event]:
    threshold = message.threshold_milliseconds
    yield pleg.RelistFailing(
        error=message.error, last_listed_at=message.last_listed_at, threshold_milliseconds=threshold
    )
    if said := illness(message.last_listed_at or None, now, threshold):
        yield pleg.Unhealthy(message=said)


def _listing_news(state: State, message: signals.Relisted) -> Sequence[Event]:
    """What is new in a listing: of containers at most MOST_EVENTS, and of pods whether they can be inspected."""
    found = tuple(_all_news(state, message.seen))
    told = found[:MOST_EVENTS]
    put_off = len(found) - len(told)
    return (*told, *_pods(state, message, told), *([pleg.EventsPutOff(count=put_off)] if put_off else ()))


def _pods(state: State, message: signals.Relisted, told: Sequence[pleg.ContainerEvent]) -> Iterator[Event]:
    unread = {one.uid: one for one in message.unread}
    for uid, one in unread.items():
        if uid not in state.unread:
            yield pleg.PodUnreadable(pod=one.pod, uid=uid, error=one.error)
    if message.partial:
        return
    changed = {event.uid for event in told}
    for uid, known in sorted(state.unread.items()):
        if uid not in unread:
            yield pleg.PodReadable(pod=known.pod, uid=uid, changed=uid in changed)


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


def _all_news(state: State, seen: Sequence[signals.Seen]) -> Iterator[pleg.ContainerEvent]:
    for one in seen:
        yield from _news(state, one)


def _news(state: State, seen: signals.Seen) -> Iterator[pleg.ContainerEvent]:
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


def _died(state: State, run: Run | None, seen: signals.Seen, who: dict[str, Any]) -> pleg.ContainerEvent:
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


def _rings(policy: Policy, state: State, now: int) -> Iterator[Event]:
    ill_at = _ill_at(state)
    if ill_at is not None and ill_at <= now:
        yield pleg.Unhealthy(message=illness(state.listed_at, now, state.threshold_milliseconds))
    yield from holding_back.rings(policy, state.probe_kills, now)


def due(policy: Policy, state: State) -> int | None:
    """When pleg becomes unhealthy if no listing works until then, or what `holding_back` is due to do. Looking again is
    the standing effects' business.
    """
    times = (_ill_at(state), holding_back.due(policy, state.probe_kills))
    return min((at for at in times if at is not None), default=None)


def _ill_at(state: State) -> int | None:
    if state.relist != "failing" or state.unhealthy:
        return None
    return ill_from(state.listed_at, state.threshold_milliseconds)


def outstanding(state: State) -> Sequence[Effect]:
    """The two standing effects, always."""
    return (
        wanted.FollowRuntime(subject="stream", intent="follow"),
        wanted.Relist(subject="relist", intent=f"relist/{state.anew}", known=tuple(sorted(state.containers))),
    )


def decider(node: str, policy: Policy = Policy()) -> Decider[State]:  # noqa: B008 - frozen
    """The decider of the node of that name."""
    return Decider(
        initial=State(),
        decide=functools.partial(decide, node, policy),
        evolve=evolve,
        due=functools.partial(due, policy),
        outstanding=outstanding,
    )


DECIDER: Decider[State] = decider("")
"""Enough to fold a history."""
