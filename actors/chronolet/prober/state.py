"""One probe of one container, folded from its own events.

Comes in: nothing. Goes out: the frozen State. Next: `evolve` makes new ones, `decider` reads them, `describe` shows
them. Times in milliseconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.podspec import Probe, RestartPolicy
from chronolet_schemas.prober import ProbeName, ProbeResult


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`uid` is empty before the probe is wanted.

    `result` is what counts for the container `id`, empty before there is one. `last` and `consecutive` are the streak,
    which outlives the container. `running`: it runs, and is to be probed; `started`: it counts as started; `held`: a
    threshold was reached that ends the probing of this container. `anchored`: this run was probed, first at `from_at`.

    `output`, `code` and `at` are of the last outcome that was an event. `told_at` is when one that is no success was
    last told; `errored`: the last one was an error.

    `unjudged` outcomes have come since the last success, in `unjudged_milliseconds`, as far as was reported. `asked`:
    the threshold is reached, and `pleg` decides when the container may be stopped.
    """

    pod: str = ""
    uid: str = ""
    container: str = ""
    probe: ProbeName = "Liveness"
    definition: Probe = Probe()
    restarts: RestartPolicy = "Always"
    period_milliseconds: int = 0
    field: str = ""
    change: int = 0
    attempt: int = 0
    id: str = ""
    started_at: int = 0
    ip: str = ""
    from_at: int = 0
    anchored: bool = False
    running: bool = False
    started: bool = False
    held: bool = False
    result: ProbeResult | Literal[""] = ""
    last: Literal["", "success", "failure"] = ""
    consecutive: int = 0
    output: str = ""
    code: int | None = None
    at: int = 0
    told_at: int = 0
    errored: bool = False
    unjudged: int = 0
    unjudged_milliseconds: int = 0
    asked: bool = False
