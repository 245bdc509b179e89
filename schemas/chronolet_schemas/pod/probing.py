"""What a pod asks of `prober`, and what it makes of the answers. Source: pkg/kubelet/prober."""

from __future__ import annotations

from chronolet_schemas.pod.base import ContainerEvent
from chronolet_schemas.podspec import Probe, RestartPolicy
from chronolet_schemas.prober import ProbeName, ProbeResult
from chronolet_schemas.registry import registered


@registered
class ProbingRequested(ContainerEvent, frozen=True, kw_only=True):
    """The container runs, its postStart hook is over: it is to be probed in this way.

    `started_at` by the runtime's clock; `ip` is the pod's address, empty where it has none. `restarts` is the policy
    that holds for the container; `started`: it counts as started (it has no startup probe, or that has succeeded).
    `definition` has numbers for ports and a command without references; it is from the spec of `digest`. `field` is the
    container's own path in the spec, as KubeEvents name it.
    """

    id: str
    digest: str
    started_at: int
    ip: str
    restarts: RestartPolicy
    started: bool
    field: str
    probe: ProbeName
    definition: Probe
    period_milliseconds: int


@registered
class ProbingWithdrawn(ContainerEvent, frozen=True, kw_only=True):
    """The container, which was probed before, has no such probe any more, or is no more."""

    probe: ProbeName


@registered
class ProbingSkipped(ContainerEvent, frozen=True, kw_only=True):
    """Nobody in this node probes: the probe of the container `id` counts as if it had succeeded.

    `digest` and `started_at` as in ProbingRequested.
    """

    id: str
    digest: str
    started_at: int
    probe: ProbeName


@registered
class ContainerProbed(ContainerEvent, frozen=True, kw_only=True):
    """What counts for the run of container `id` that began at `started_at` is another result of this probe now."""

    id: str
    started_at: int
    probe: ProbeName
    result: ProbeResult
