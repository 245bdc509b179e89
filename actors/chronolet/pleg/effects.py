"""Pleg's two standing effects: one follows the runtime's notices, one lists its containers.

Input: a runtime. Output: the jobs of `wanted.FollowRuntime` and `wanted.Relist`. Next: `workers`, which send `signals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chronolet.kernel.kind import Effect, Job
from chronolet.pleg import wanted
from chronolet.pleg.workers.follow import Following, Origin
from chronolet.pleg.workers.link import Link
from chronolet.pleg.workers.listings import PATIENCE_SECONDS, Ahead
from chronolet.pleg.workers.relist import Listing
from chronolet.ports.runtime.runtime import Runtime

STEADY_SECONDS = 10.0
"""Interval between two listings while the stream is open."""
THRESHOLD_SECONDS = 180.0


def jobs(
    runtime: Runtime,
    node: str,
    *,
    steady_seconds: float = STEADY_SECONDS,
    threshold_seconds: float = THRESHOLD_SECONDS,
    run: Callable[[], str] = lambda: "",
    boot_id: str = "",
    endpoint: str = "",
    ahead: Ahead | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Mapping[type[Effect], Job]:
    """Return the jobs of pleg's standing effects.

    `steady_seconds`: the interval between listings while the stream is open. `threshold_seconds`: maximum age of the
    last successful listing for pleg to be healthy. `run`: returns the id of the log's run. `boot_id`: the machine's
    boot id. `endpoint`: the runtime's address. `ahead`: may hold an early first listing. `patience_seconds`: how long a
    listing waits for its inspects.
    """
    link = Link()
    following = Following(runtime, node, link, run, Origin(boot_id, endpoint))
    listing = Listing(
        runtime, node, link, steady_seconds, threshold_seconds, ahead=ahead, patience_seconds=patience_seconds
    )
    return {wanted.FollowRuntime: Job(following.follow), wanted.Relist: Job(listing.list)}
