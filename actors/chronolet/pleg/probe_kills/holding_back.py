"""Rate-limits liveness and startup kills while an overloaded machine makes the probes of several pods fail. Pure.

Input: State's `probe_kills`, the time, and the prober's `KillWithdrawn`, `ProbeUnjudged` and `KillAsked`. A pod has
trouble when one of the last two names resources that the machine is short of. Output: events of `pleg`. Next:
`decider`; the prober subscribes to ProbeKillReleased. The kubelet has no counterpart. Times are in milliseconds.

    phase       message or time                           event, next phase
    immediate   a kill is requested                       ProbeKillReleased
    immediate   PODS pods have trouble within WINDOW      ProbeKillsHeldBack -> held back
    held back   a kill is requested                       ProbeKillHeld: it is queued
    held back   the head of the queue is due              ProbeKillReleased
    held back   a kill is withdrawn                       ProbeKillDropped
    held back   no kill is queued, and WINDOW has passed  ProbeKillsResumed -> immediate
                without trouble or a release

Trouble is recorded in both phases by ProbeTroubleNoted. The head of the queue is due once it has waited for
`hold_milliseconds` and a minute divided by `kills_per_minute` has passed since the previous release. So the last of n
kills waits for at most `hold_milliseconds` plus n such intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from chronolet.pleg.probe_kills.evolve import key
from chronolet.pleg.probe_kills.state import HeldKill, ProbeKills
from chronolet.rules.refs import ProbeRef
from chronolet_schemas import pleg, prober
from chronolet_schemas.envelope import Event

PODS = 3
"""If this many pods have trouble within WINDOW_MS, the cause is the machine, not the pods."""
WINDOW_MS = 30_000
NOTED_MS = 10_000
"""Minimum interval between two records of trouble: per pod, or for all pods together while kills are held back."""
_MINUTE_MS = 60_000


class _KillRef(ProbeRef):
    id: str
    started_at: int


Trouble = prober.ProbeUnjudged | prober.KillAsked
ProberMessage = Trouble | prober.KillWithdrawn


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for kills that are held back: the number released per minute, and the minimum wait of each. If
    `kills_per_minute` is 0, kills are never held back (`--probe-overload-protection=false`).
    """

    kills_per_minute: int = 10
    hold_milliseconds: int = 60_000

    @property
    def interval(self) -> int:
        """Minimum time between two kills, in milliseconds."""
        return _MINUTE_MS // self.kills_per_minute


def handle(policy: Policy, known: ProbeKills, message: ProberMessage, now: int) -> Sequence[Event]:
    """Return the events that follow from a message of the prober."""
    if isinstance(message, prober.KillWithdrawn):
        kill = known.held.get(key(message))
        return () if kill is None else (pleg.ProbeKillDropped(at=now, **_run(kill)),)
    noted = tuple(_noted(policy, known, message, now)) if policy.kills_per_minute and message.short_of else ()
    if isinstance(message, prober.ProbeUnjudged):
        return noted
    begins = any(isinstance(event, pleg.ProbeKillsHeldBack) for event in noted)
    if policy.kills_per_minute and (known.since or begins):
        return (*noted, pleg.ProbeKillHeld(at=now, **_run(message)))
    return (*noted, pleg.ProbeKillReleased(at=now, **_run(message)))


def _noted(policy: Policy, known: ProbeKills, message: Trouble, now: int) -> Iterator[Event]:
    """Record trouble, unless it was recorded within NOTED_MS; if enough pods have trouble, start to hold back kills."""
    last = known.troubled_at if known.since else known.troubled.get(message.pod)
    if last is None or not 0 <= now - last < NOTED_MS:
        yield pleg.ProbeTroubleNoted(pod=message.pod, at=now, short_of=message.short_of)
    pods = {pod for pod, at in known.troubled.items() if now - at < WINDOW_MS} | {message.pod}
    if not known.since and len(pods) >= PODS:
        yield pleg.ProbeKillsHeldBack(
            at=now, pods=len(pods), short_of=message.short_of, kills_per_minute=policy.kills_per_minute
        )


def due(policy: Policy, known: ProbeKills) -> int | None:
    """Return when the next held kill is due, or when holding back ends; None if kills are not held back."""
    if not known.since:
        return None
    if not policy.kills_per_minute:
        return known.since
    if known.held:
        return _release_at(policy, known, _queue(known)[0])
    return max(known.troubled_at, known.since, known.released_at) + WINDOW_MS


def on_due(policy: Policy, known: ProbeKills, now: int) -> Iterator[Event]:
    """Yield the events that are due at `now`, if any."""
    at = due(policy, known)
    if at is None or at > now:
        return
    kills = _queue(known) if not policy.kills_per_minute else _queue(known)[:1]
    for kill in kills:
        yield _release(kill, now)
    if len(kills) == len(known.held) and (not kills or not policy.kills_per_minute):
        yield pleg.ProbeKillsResumed(at=now, released=known.released + len(kills), dropped=known.dropped)


def _queue(known: ProbeKills) -> list[HeldKill]:
    """Return the held kills, oldest first; those requested in the same millisecond are sorted by key."""
    return sorted(known.held.values(), key=lambda kill: (kill.at, key(kill)))


def _release_at(policy: Policy, known: ProbeKills, kill: HeldKill) -> int:
    return max(kill.at + policy.hold_milliseconds, known.released_at + policy.interval)


def _release(kill: HeldKill, now: int) -> Event:
    return pleg.ProbeKillReleased(at=now, held_milliseconds=now - kill.at, **_run(kill))


def _run(kill: HeldKill | prober.KillAsked) -> _KillRef:
    """Return the fields that identify the probe and the container's run."""
    return _KillRef(
        pod=kill.pod,
        uid=kill.uid,
        container=kill.container,
        probe=kill.probe,
        id=kill.id,
        started_at=kill.started_at,
    )
