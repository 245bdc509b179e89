"""The prober's standing effect: a ProbeWorker while the container must be probed.

Output: the Effect Struct that `decider.outstanding` returns. Next: `effects`, whose worker sends `signals` until it is
cancelled. Source: pkg/kubelet/prober/worker.go (run).
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import ProbeName


class RunProbe(Effect, frozen=True, kw_only=True):
    """Probe the container `id` every `period_milliseconds`, first at `schedule.next_at(from_at, ...)`, and send a
    ProbeOutcome for each probe.

    A probe that is still running when the next one is due skips that one. In `definition`, ports are numbers (a
    remaining name matches no port of the container) and the command has no references left. `ip`: the pod's address.

    Outcomes that are no news to `outcomes.Streak` may be omitted. Every outcome goes to the stream `probe_results` and
    to the metrics.
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
    """This run was probed before, first at `from_at`: the next probe is a whole number of periods later."""
    unjudged: int = 0
    """Outcomes already recorded as unjudged, within `unjudged_milliseconds`; the limit counts on from there."""
    unjudged_milliseconds: int = 0
