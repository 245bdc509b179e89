"""Pleg's decider: turns observations of containers into events, and decides when kills for failed probes happen. Pure.

Input: `signals` of the two standing effects; `prober.ProbeUnjudged`, `KillAsked` and `KillWithdrawn`;
`pleg.AdoptContainers` for containers that are older than the log; Due. Output: events of `pleg`, each followed by its
KubeEvents; none if a signal reports nothing new. Next: `pod`, the prober, the collectors. `containers` compares
observations with the state; `probe_kills` queues the liveness and startup kills that are held back: this is done in
pleg because a node has exactly one. Source: pkg/kubelet/pleg/generic.go, evented.go.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import structs

from chronolet.kernel.decider import Decider, Due, Effect
from chronolet.pleg import signals, wanted
from chronolet.pleg.containers.changes import change, changes, oom_killed
from chronolet.pleg.evolve import evolve
from chronolet.pleg.health import ill_from, illness
from chronolet.pleg.probe_kills import holding_back
from chronolet.pleg.probe_kills.holding_back import Policy
from chronolet.pleg.reporting import kube_events_for
from chronolet.pleg.state import State
from chronolet_schemas import pleg, prober
from chronolet_schemas.envelope import Event

MOST_EVENTS = 1000
"""Maximum number of container events from one listing: the capacity of the kubelet's channel. The kubelet drops any
further events; pleg defers them to the next listing."""

_ContainerMessage = signals.ContainerObserved | signals.OomKilled | signals.Relisted | pleg.AdoptContainers
PlegMessage = (
    _ContainerMessage
    | signals.StreamOpened
    | signals.StreamBroken
    | signals.RelistFailed
    | holding_back.ProberMessage
    | Due
)
"""Every message that pleg handles."""


def decide(node: str, policy: Policy, state: State, message: PlegMessage, now: int) -> Sequence[Event]:
    """Return the new facts in a message, each followed by its KubeEvents."""
    facts = _facts(policy, state, message, now)
    return tuple(one for event in facts for one in (event, *kube_events_for(node, state, event)))


def _facts(policy: Policy, state: State, message: PlegMessage, now: int) -> Sequence[Event]:
    match message:
        case prober.ProbeUnjudged() | prober.KillAsked() | prober.KillWithdrawn():
            return holding_back.handle(policy, state.probe_kills, message, now)
        case signals.ContainerObserved() | signals.OomKilled() | signals.Relisted() | pleg.AdoptContainers():
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
        case signals.ContainerObserved():
            return tuple(change(state, message))
        case signals.OomKilled():
            return tuple(oom_killed(state, message))
        case signals.Relisted():
            works = () if message.partial else _relist_works(state, message)
            return (*works, *_listing_events(state, message))
        case _:
            running = tuple(
                signals.ContainerObserved(state="running", **structs.asdict(one)) for one in message.running
            )
            return (*changes(state, running), pleg.ContainersAdopted(running=len(running)))


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


def _listing_events(state: State, message: signals.Relisted) -> Sequence[Event]:
    """Return the events of a listing: at most MOST_EVENTS container events, which pods became readable or unreadable,
    and how many container events were deferred.
    """
    found = tuple(changes(state, message.observed))
    reported = found[:MOST_EVENTS]
    deferred = len(found) - len(reported)
    return (*reported, *_pods(state, message, reported), *([pleg.EventsPutOff(count=deferred)] if deferred else ()))


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


def _on_due(policy: Policy, state: State, now: int) -> Iterator[Event]:
    ill_at = _ill_at(state)
    if ill_at is not None and ill_at <= now:
        yield pleg.Unhealthy(message=illness(state.listed_at, now, state.threshold_milliseconds))
    yield from holding_back.on_due(policy, state.probe_kills, now)


def due(policy: Policy, state: State) -> int | None:
    """Return the earlier of two times: when pleg becomes unhealthy unless a listing succeeds first, and when
    `holding_back` acts next; None if neither applies. The standing effects schedule their own listings.
    """
    times = (_ill_at(state), holding_back.due(policy, state.probe_kills))
    return min((at for at in times if at is not None), default=None)


def _ill_at(state: State) -> int | None:
    if state.relist != "failing" or state.unhealthy:
        return None
    return ill_from(state.listed_at, state.threshold_milliseconds)


def outstanding(state: State) -> Sequence[Effect]:
    """Return the two standing effects, which are outstanding in every state."""
    return (
        wanted.FollowRuntime(subject="stream", intent="follow"),
        wanted.Relist(subject="relist", intent=f"relist/{state.anew}", known=tuple(sorted(state.containers))),
    )


def decider(node: str, policy: Policy = Policy()) -> Decider[State]:  # noqa: B008 - frozen
    """Build the decider of the node named `node`."""
    return Decider(
        initial=State(),
        decide=functools.partial(decide, node, policy),
        evolve=evolve,
        due=functools.partial(due, policy),
        outstanding=outstanding,
    )


DECIDER: Decider[State] = decider("")
"""A decider with an empty node name and the default policy, for code that only folds a history."""
