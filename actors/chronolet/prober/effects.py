"""The job of the prober's only effect.

Input: `wanted.RunProbe`. Output: its `ProbeWorker`. Next: `workers.probe_worker`.
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet.kernel.kind import Effect, EventDriven
from chronolet.prober import wanted
from chronolet.prober.workers.dependencies import ProberDependencies
from chronolet.prober.workers.probe_worker import begin


def jobs(deps: ProberDependencies) -> Mapping[type[Effect], EventDriven]:
    """Return the job of the prober's standing effect."""
    return {wanted.RunProbe: EventDriven(begin(deps))}
