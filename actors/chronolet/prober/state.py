"""The state of one probe of one container, folded from its own events.

Output: the frozen State. Next: `evolve` creates it, `decider` reads it, `describe` shows it. Times are in milliseconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.podspec import Probe, RestartPolicy
from chronolet_schemas.prober import ProbeName, ProbeResult


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One probe. `uid` is empty until the probe is requested.

    `result`: the current result for the container `id`, empty before the first. `last` and `consecutive`: the streak,
    which outlives the container. `running`: whether the container is running and must be probed; `started`: whether it
    counts as started; `held`: whether a threshold ended the probing of this container. `anchored`: whether this run has
    been probed, first at `from_at`.

    `output`, `code` and `at` belong to the last outcome that became an event, other than unjudged. `told_at`: when a
    failure, unknown, warning or error was last recorded; `errored`: whether the last of these outcomes or successes was
    an error.

    `unjudged`: the number of unjudged outcomes since the last success, within `unjudged_milliseconds`, as last
    reported. `asked`: whether the threshold is reached and `pleg` decides when the container may be stopped.
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
