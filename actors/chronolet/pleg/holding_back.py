"""When liveness and startup kills are held back, and when each of them may be carried out. Pure.

Comes in: State's `probe_kills`; of the prober `ProbeUnjudged`, `KillAsked`, `KillWithdrawn`, all of which name what the
machine is short of; the time. Goes out: events of `pleg`. Next: `decider`; the prober hears ProbeKillReleased. The
kubelet has nothing like it. Times in milliseconds.

    at once     a kill is asked for                       ProbeKillReleased
    at once     trouble of PODS pods within WINDOW        ProbeKillsHeldBack: held back
    held back   a kill is asked for                       ProbeKillHeld: it waits for its turn
    held back   the first in the queue has its turn       ProbeKillReleased
    held back   a kill is withdrawn                       ProbeKillDropped
    held back   no kill waits, and for WINDOW there was   ProbeKillsResumed: at once
                no trouble and none was released

A kill has its turn when it is the first in the queue, has waited for `hold_milliseconds`, and the one before it is a
minute divided by `kills_per_minute` ago. So the last of n kills waits for at most the hold plus n of these intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from chronolet.pleg.evolve_kills import key
from chronolet.pleg.state import HeldKill, ProbeKills
from chronolet_schemas import pleg, prober
from chronolet_schemas.envelope import Event

PODS = 3
"""So many pods with trouble at about the same time are not ill themselves."""
WINDOW_MS = 30_000
NOTED_MS = 10_000
"""Trouble of a pod is noted at most so often; while kills are held back, trouble of all pods together."""
_MINUTE_MS = 60_000

Trouble = prober.ProbeUnjudged | prober.KillAsked
Heard = Trouble | prober.KillWithdrawn


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """`kills_per_minute` of 0: nothing is held back (`--probe-overload-protection=false`)."""

    kills_per_minute: int = 10
    hold_milliseconds: int = 60_000

    @property
    def interval(self) -> int:
        """Between two kills."""
        return _MINUTE_MS // self.kills_per_minute


def heard(policy: Policy, known: ProbeKills, message: Heard, now: int) -> Sequence[Event]:
    """What follows from a message of the prober."""
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
    """Trouble, unless it was noted a moment ago; with enough pods in it, kills are held back from now on."""
    last = known.troubled_at if known.since else known.troubled.get(message.pod)
    if last is None or not 0 <= now - last < NOTED_MS:
        yield pleg.ProbeTroubleNoted(pod=message.pod, at=now, short_of=message.short_of)
    pods = {pod for pod, at in known.troubled.items() if now - at < WINDOW_MS} | {message.pod}
    if not known.since and len(pods) >= PODS:
        yield pleg.ProbeKillsHeldBack(
            at=now, pods=len(pods), short_of=message.short_of, kills_per_minute=policy.kills_per_minute
        )


def due(policy: Policy, known: ProbeKills) -> int | None:
    """When the next kill has its turn, or kills are not held back any more."""
    if not known.since:
        return None
    if not policy.kills_per_minute:
        return known.since
    if known.held:
        return _turn(policy, known, _queue(known)[0])
    return max(known.troubled_at, known.since, known.released_at) + WINDOW_MS


def rings(policy: Policy, known: ProbeKills, now: int) -> Iterator[Event]:
    """What is to happen now, if anything is."""
    at = due(policy, known)
    if at is None or at > now:
        return
    kills = _queue(known) if not policy.kills_per_minute else _queue(known)[:1]
    for kill in kills:
        yield _release(kill, now)
    if len(kills) == len(known.held) and (not kills or not policy.kills_per_minute):
        yield pleg.ProbeKillsResumed(at=now, released=known.released + len(kills), dropped=known.dropped)


def _queue(known: ProbeKills) -> list[HeldKill]:
    """The oldest first; of those asked for in one moment, by name."""
    return sorted(known.held.values(), key=lambda kill: (kill.at, key(kill)))


def _turn(policy: Policy, known: ProbeKills, kill: HeldKill) -> int:
    return max(kill.at + policy.hold_milliseconds, known.released_at + policy.interval)


def _release(kill: HeldKill, now: int) -> Event:
    return pleg.ProbeKillReleased(at=now, held_milliseconds=now - kill.at, **_run(kill))


def _run(kill: HeldKill | prober.KillAsked) -> dict[str, Any]:
    """Which run of which container, and by which probe."""
    return {name: getattr(kill, name) for name in ("pod", "uid", "container", "probe", "id", "started_at")}
