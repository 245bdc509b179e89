"""The liveness and startup kills that pleg holds back: a part of its state.

Output: the frozen ProbeKills. Next: `holding_back`. Times are milliseconds of the agent's clock.
"""

from __future__ import annotations

import immutables
import msgspec

from chronolet_schemas.prober import ProbeName, Shortage


class HeldKill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A liveness or startup kill that is held back. `at`: when it was requested, in milliseconds."""

    pod: str
    uid: str
    container: str
    probe: ProbeName
    id: str
    started_at: int
    at: int


class ProbeKills(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Liveness and startup kills that are being held back. Times are milliseconds of the agent's clock.

    `since`: when holding back began, 0 if kills are not held back. `short_of`: the resources that the machine was short
    of at that time; `kills_per_minute`: the limit at that time. `held`: the waiting kills by probe key. `troubled`:
    pods whose probes recently had trouble during a shortage, each with the time; `troubled_at`: the latest of these
    times. `released_at`: when a kill was last released. `released` and `dropped`: how many kills have been released and
    dropped since `since`.
    """

    since: int = 0
    short_of: tuple[Shortage, ...] = ()
    kills_per_minute: int = 0
    held: immutables.Map[str, HeldKill] = immutables.Map()
    troubled: immutables.Map[str, int] = immutables.Map()
    troubled_at: int = 0
    released_at: int = 0
    released: int = 0
    dropped: int = 0


NO_KILLS = ProbeKills()
