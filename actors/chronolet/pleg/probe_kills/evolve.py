"""Applies pleg's events about kills for failed probes to `ProbeKills`. Pure; cannot fail.

Input: ProbeKills, an event of the log. Output: ProbeKills after it. Next: `pleg.evolve`.
"""

from __future__ import annotations

import immutables
from msgspec.structs import replace

from chronolet.pleg.probe_kills.state import NO_KILLS, HeldKill, ProbeKills
from chronolet_schemas import pleg, prober

REMEMBERED_MS = 60_000
"""How long trouble is remembered, in milliseconds: twice the window of `holding_back`."""

KillsEvent = pleg.ProbeKillEvent | pleg.ProbeTroubleNoted | pleg.ProbeKillsHeldBack | pleg.ProbeKillsResumed


def key(one: HeldKill | pleg.ProbeKillEvent | prober.ProbeEvent) -> str:
    """Return the probe's key: `pod/container/probe`."""
    return f"{one.pod}/{one.container}/{one.probe}"


def probe_kills(known: ProbeKills, event: KillsEvent) -> ProbeKills:
    """Return ProbeKills after `event`."""
    match event:
        case pleg.ProbeTroubleNoted():
            troubled = {pod: at for pod, at in known.troubled.items() if event.at - at < REMEMBERED_MS}
            return replace(known, troubled=immutables.Map(troubled | {event.pod: event.at}), troubled_at=event.at)
        case pleg.ProbeKillsHeldBack():
            return replace(
                known,
                since=event.at,
                short_of=event.short_of,
                kills_per_minute=event.kills_per_minute,
                released=0,
                dropped=0,
            )
        case pleg.ProbeKillsResumed():
            return replace(NO_KILLS, released_at=known.released_at)
        case _:
            return _of_one(known, event)


def _of_one(known: ProbeKills, event: pleg.ProbeKillEvent) -> ProbeKills:
    probe = key(event)
    if isinstance(event, pleg.ProbeKillHeld):
        kill = HeldKill(
            pod=event.pod,
            uid=event.uid,
            container=event.container,
            probe=event.probe,
            id=event.id,
            started_at=event.started_at,
            at=event.at,
        )
        return replace(known, held=known.held.set(probe, kill))
    waited = probe in known.held
    held = known.held.delete(probe) if waited else known.held
    if isinstance(event, pleg.ProbeKillReleased):
        return replace(known, held=held, released=known.released + waited, released_at=event.at)
    return replace(known, held=held, dropped=known.dropped + waited)
