"""What runs, as far as pleg was told: folded from pleg's own events.

Comes in: nothing. Goes out: the frozen State. Next: `decider`; metrics and health read it too. Times in milliseconds
by the runtime's clock, 0 where unknown.
"""

from __future__ import annotations

from typing import Literal

import immutables
import msgspec

from chronolet_schemas.prober import ProbeName, Shortage


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container of the runtime: whose it is, and the last that is known of it.

    `state` is the last that could be told (empty: never any); `unknown` says that it cannot be told at present.
    `before` is when the run before this one started, 0 if there was none.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    state: Literal["", "created", "running", "exited"] = ""
    unknown: bool = False
    started_at: int = 0
    finished_at: int = 0
    before: int = 0


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of which something could not be inspected."""

    pod: str
    error: str


class HeldKill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A liveness or startup kill that waits, asked for `at` (by the agent's clock)."""

    pod: str
    uid: str
    container: str
    probe: ProbeName
    id: str
    started_at: int
    at: int


class ProbeKills(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether liveness and startup kills are held back, `since` when (0: they are not), and what the machine is
    `short_of`. Times by the agent's clock.

    `held` are the kills that wait, by the probe's key. `troubled` has the pods whose probes had trouble while the
    machine was short of something, with the time, a while long; `troubled_at` is the last of these times. `released_at`
    is when a kill was last released; `released` and `dropped` count those of this hold-back.
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


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`containers` by runtime id; removed ones leave. `out_of_memory` holds ids that have not died since.

    `stream` and `relist` say how it goes with the two ways to hear of the runtime. `anew` counts the times that the
    listing had to begin from nothing: containers were adopted, or one listing told more than a step may say. `boot_id`
    is the last that was heard of; so are the engine's address (`endpoint`) and its own id, both empty in older logs.

    While `relist` is failing, `listed_at` is when the last one that worked began (0: never), and pleg is `unhealthy`
    once that is longer ago than `threshold_milliseconds`. `unread` are the uids of pods that cannot be inspected, with
    the error: what is known of their containers may be old. `probe_kills`: see there.
    """

    containers: immutables.Map[str, Run] = immutables.Map()
    out_of_memory: frozenset[str] = frozenset()
    stream: Literal["", "followed", "lost"] = ""
    relist: Literal["", "working", "failing"] = ""
    listed_at: int = 0
    threshold_milliseconds: int = 0
    unhealthy: bool = False
    unread: immutables.Map[str, Unread] = immutables.Map()
    anew: int = 0
    boot_id: str = ""
    endpoint: str = ""
    engine_id: str = ""
    probe_kills: ProbeKills = NO_KILLS
