"""Pleg's state: the known containers and their runs, folded from pleg's own events.

Output: the frozen State. Next: `decider`; metrics and health read it too. Times of runs are milliseconds of the
runtime's clock, 0 if unknown.
"""

from __future__ import annotations

from typing import Literal

import immutables
import msgspec

from chronolet.pleg.probe_kills.state import NO_KILLS, ProbeKills


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container of the runtime: its owner and its last known run.

    `state`: the last known state, empty if none was ever known; `unknown`: whether the present state is unknown.
    `before`: when the previous run started, 0 if there was none.
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
    """A pod with a container that could not be inspected."""

    pod: str
    error: str


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the node's one pleg entity.

    `containers`: the runs by container id; removed containers are dropped. `out_of_memory`: ids of containers with an
    OOM kill that have not died since. `stream` and `relist`: the condition of the two sources. `anew`: how often the
    listing had to restart from scratch, because containers were adopted or a listing contained more events than a step
    may have. `boot_id`, `endpoint` (the engine's address) and `engine_id`: the last reported values; the last two are
    empty in older logs.

    While `relist` is failing, `listed_at` is when the last successful listing began, in milliseconds of the agent's
    clock (0: never); pleg turns `unhealthy` once that is more than `threshold_milliseconds` ago. `unread`: uids of pods
    that cannot be inspected, with the error; what is known about their containers may be outdated. `probe_kills`: see
    `ProbeKills`.
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
