"""The prober's standing effect: a ProbeWorker while the container must be probed.

Output: the Effect Struct that `decider.outstanding` returns. Next: `effects`, whose worker sends `signals` until it is
cancelled. Source: pkg/kubelet/prober/worker.go (run).
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import ProbeName


class RunProbe(Effect, frozen=True, kw_only=True):
    """Probe the container `id` every `period_milliseconds`, first at the time that `schedule.begins_at` returns, and
    send its outcomes as ProbeOutcome.

    If a probe is still running when the next one is due, that one is skipped. In `definition`, ports are numbers (a
    name that remains matches no port of the container) and the command has no references left. `ip`: the pod's address.

    An outcome that only repeats earlier ones need not be sent (`outcomes.Streak`). Every outcome goes to the stream
    `probe_results` and to the metrics.
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
    """Whether this run has been probed, first at `from_at`: the next probe is then a whole number of periods later."""
    unjudged: int = 0
    """The number of outcomes already recorded as unjudged, within `unjudged_milliseconds`; the limit includes them."""
    unjudged_milliseconds: int = 0
