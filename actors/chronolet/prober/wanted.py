"""What a probe wants to have running: its ProbeWorker, while its container is to be probed.

Comes in: nothing. Goes out: the Effect Struct that `decider.outstanding` returns. Next: `effects`, whose worker sends
`signals` until it is cancelled. Source: pkg/kubelet/prober/worker.go (run).
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import ProbeName


class RunProbe(Effect, frozen=True, kw_only=True):
    """Probe the container `id` every `period_milliseconds`, beginning as `schedule.next_at(from_at, ...)` says, and
    send a ProbeOutcome for each.

    A probe that is still at work at its next time lets that one pass. `definition` has numbers for ports (a name that
    is left is one that no port of the container has) and a command without references. `ip` is the pod's address.

    What `streak.Streak` calls no news need not be sent. All goes to the stream `probe_results` and to the metrics.
    """

    pod: str
    uid: str
    container: str
    probe: ProbeName
    attempt: int
    id: str
    definition: Probe
    period_milliseconds: int
    ip: str
    from_at: int
    anchored: bool
    """This run of the container was probed before, at `from_at` first: the next time is a whole number of periods
    later."""
    unjudged: int = 0
    """So many outcomes were unjudged already, within `unjudged_milliseconds`: their limit goes on from there."""
    unjudged_milliseconds: int = 0
