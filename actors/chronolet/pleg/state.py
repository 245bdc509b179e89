"""What runs, as far as pleg was told: folded from pleg's own events.

Comes in: nothing. Goes out: the frozen State. Next: `decider`; metrics and health read it too.
"""

from __future__ import annotations

import immutables
import msgspec


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One container of the runtime: whose it is and the last that is known of it.

    `state` is created, running, exited or unknown; `started_at` (milliseconds) tells runs of the same id apart.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    state: str
    started_at: int = 0


class State(msgspec.Struct, frozen=True, kw_only=True):
    """`containers` by runtime id; removed ones leave. `oom` holds ids with an out-of-memory notice and no death yet."""

    containers: immutables.Map[str, Run] = immutables.Map()
    oom: frozenset[str] = frozenset()
    following: bool = False
    listing: bool = False
    trouble: str = ""
