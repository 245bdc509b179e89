"""Pleg's decider: turns notices and listings of the runtime into container events. Pure.

Input: `signals` of the two standing effects; `pleg.AdoptContainers` for containers older than the log. Output: events
of `pleg`; none for a signal without news. Next: `pod`, the prober, the collectors.
It also queues held liveness and startup kills (`holding_back`), because a node has exactly one pleg.
Source: pkg/kubelet/pleg/generic.go, evented.go.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import structs
from msgspec.structs import replace

from chronolet.kernel.decider import Decider, Due, Effect
from chronolet.pleg import holding_back, signals, wanted
from chronolet.pleg.evolve import evolve
from chronolet.pleg.health import ill_from, illness
from chronolet.pleg.holding_back import Policy
from chronolet.pleg.reporting import kube_events_for
from chronolet.pleg.runs import is_news
from chronolet.pleg.state import Run, State
from chronolet.pleg.transitions import Phase, computed
from chronolet.rules.refs import ContainerRef
from chronolet_schemas import pleg, prober
from chronolet_schemas.envelope import Event

_KILLED = 137
"""Exit code after SIGKILL; the kubelet also writes it when the exit code is unknown."""

MOST_EVENTS = 1000
"""Most container events of one listing: the capacity of the kubelet's channel. The kubelet drops the rest; we put it
off."""

_ContainerMessage = signals.Noticed | signals.Relisted | pleg.AdoptContainers
Message = (
    _ContainerMessage
    | signals.StreamOpened
    | signals.StreamBroken
    | signals.RelistFailed
    | holding_back.ProberMessage
    | Due
)
"""Every message that pleg handles."""


def decide(node: str, policy: Policy, state: State, message: Message, now: int) -> Sequence[Event]:
    """The new facts in a message, each followed by the KubeEvents that the kubelet would record for it."""
    facts = _facts(policy, state, message, now)
    return tuple(one for event in facts for one in (event, *kube_events_for(node, state, event)))


def _facts(policy: Policy, state: State, message: Message, now: int) -> Sequence[Event]:
    match message:
        case prober.ProbeUnjudged() | prober.KillAsked() | prober.KillWithdrawn():
            return holding_back.handle(policy, state.probe_kills, message, now)
        case signals.Noticed() | signals.Relisted() | pleg.AdoptContainers():
            return _container_events(state, message)
        case signals.RelistFailed():
            return () if state.relist == "failing" else tuple(_relist_fails(message, now))
        case Due():
            return tuple(_on_due(policy, state, max(now, message.at)))
        case signals.StreamOpened():
            return (_followed(message),)
        case signals.StreamBroken():
            return () if state.stream == "lost" else (pleg.StreamLost(error=message.error),)
        case _:
            assert_never(message)


def _container_events(state: State, message: _ContainerMessage) -> Sequence[Event]:
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
            yield pleg.OutOfMemory(**_ref(notice))
    elif notice.action != "create":
        # A created container is about to start; its start is the news. The relist finds one that never starts.
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
    if reason := illness(message.last_listed_at or None, now, threshold):
        yield pleg.Unhealthy(message=reason)


def _listing_news(state: State, message: signals.Relisted) -> Sequence[Event]:
    """The news in a listing: at most MOST_EVENTS container events, and which pods became readable or unreadable."""
    found = tuple(_all_news(state, message.seen))
    reported = found[:MOST_EVENTS]
    put_off = len(found) - len(reported)
    return (*reported, *_pods(state, message, reported), *([pleg.EventsPutOff(count=put_off)] if put_off else ()))


def _pods(state: State, message: signals.Relisted, reported: Sequence[pleg.ContainerEvent]) -> Iterator[Event]:
    unread = {one.uid: one for one in message.unread}
    for uid, one in unread.items():
        if uid not in state.unread:
            yield pleg.PodUnreadable(pod=one.pod, uid=uid, error=one.error)
    if message.partial:
        return
    changed = {event.uid for event in reported}
    for uid, known in sorted(state.unread.items()):
        if uid not in unread:
            yield pleg.PodReadable(pod=known.pod, uid=uid, changed=uid in changed)


def _as_seen(notice: signals.Noticed) -> signals.Seen:
    """The container state that a notice implies."""
    match notice.action:
        case "start":
            return signals.Seen(
                state="running", started_at=notice.started_at or notice.at, detailed=False, **_ref(notice)
            )
        case "die":
            return signals.Seen(
                state="exited",
                exit_code=notice.exit_code,
                started_at=notice.started_at,
                finished_at=notice.finished_at or notice.at,
                **_ref(notice),
            )
        case _:
            return signals.Seen(state="removed", **_ref(notice))


def _all_news(state: State, seen: Sequence[signals.Seen]) -> Iterator[pleg.ContainerEvent]:
    for one in seen:
        yield from _news(state, one)


def _news(state: State, seen: signals.Seen) -> Iterator[pleg.ContainerEvent]:
    """The events of one observation of one container, compared with the state before the message."""
    run = state.containers.get(seen.id)
    if not is_news(run, seen):
        return
    if run is not None:
        # A removed container has no labels left to read, so its identity comes from the state.
        seen = replace(seen, pod=run.pod, uid=run.uid, container=run.container, attempt=run.attempt)
    ref, after = _ref(seen), _after(seen)
    # A new run of the same id may be in the same state as the run before it.
    for happened in computed(_before(run), after) or computed("absent", after):
        match happened:
            case "started":
                yield pleg.ContainerStarted(started_at=seen.started_at, **ref)
            case "died":
                yield _died(state, run, seen, ref)
            case "removed":
                yield pleg.ContainerRemoved(**ref)
            case "changed":
                yield pleg.ContainerChanged(state=seen.state, **ref)
            case _:
                assert_never(happened)


def _before(run: Run | None) -> Phase:
    if run is None:
        return "absent"
    return "unknown" if run.unknown or not run.state else run.state


def _after(seen: signals.Seen) -> Phase:
    return "absent" if seen.state == "removed" else seen.state


def _died(state: State, run: Run | None, seen: signals.Seen, ref: ContainerRef) -> pleg.ContainerEvent:
    # An absent container has no exit code: show the kubelet's number, with a reason that marks it as unknown.
    gone = seen.state == "removed"
    return pleg.ContainerDied(
        exit_code=_KILLED if gone else seen.exit_code,
        reason="ContainerStatusUnknown" if gone else _reason(state, seen),
        started_at=seen.started_at or (run.started_at if run else 0),
        finished_at=seen.finished_at,
        **ref,
    )


def _reason(state: State, seen: signals.Seen) -> str:
    if seen.exit_code == _KILLED and seen.id in state.out_of_memory:
        return "OOMKilled"
    return seen.reason or ("Completed" if seen.exit_code == 0 else "Error")


def _ref(message: signals.Seen | signals.Noticed) -> ContainerRef:
    return ContainerRef(
        pod=message.pod, uid=message.uid, container=message.container, attempt=message.attempt, id=message.id
    )


def _on_due(policy: Policy, state: State, now: int) -> Iterator[Event]:
    ill_at = _ill_at(state)
    if ill_at is not None and ill_at <= now:
        yield pleg.Unhealthy(message=illness(state.listed_at, now, state.threshold_milliseconds))
    yield from holding_back.on_due(policy, state.probe_kills, now)


def due(policy: Policy, state: State) -> int | None:
    """The earlier of: when pleg becomes unhealthy unless a listing succeeds first, and `holding_back`'s next action.
    The standing effects schedule their own listings.
    """
    times = (_ill_at(state), holding_back.due(policy, state.probe_kills))
    return min((at for at in times if at is not None), default=None)


def _ill_at(state: State) -> int | None:
    if state.relist != "failing" or state.unhealthy:
        return None
    return ill_from(state.listed_at, state.threshold_milliseconds)


def outstanding(state: State) -> Sequence[Effect]:
    """The two standing effects, in every state."""
    return (
        wanted.FollowRuntime(subject="stream", intent="follow"),
        wanted.Relist(subject="relist", intent=f"relist/{state.anew}", known=tuple(sorted(state.containers))),
    )


def decider(node: str, policy: Policy = Policy()) -> Decider[State]:  # noqa: B008 - frozen
    """The decider of the node named `node`."""
    return Decider(
        initial=State(),
        decide=functools.partial(decide, node, policy),
        evolve=evolve,
        due=functools.partial(due, policy),
        outstanding=outstanding,
    )


DECIDER: Decider[State] = decider("")
"""A decider without node name or policy, for folding a history."""
