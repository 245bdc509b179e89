"""What a pod requests from `prober`, and what it does with the results. Source: pkg/kubelet/prober."""

from chronolet_schemas.pod.base import ContainerEvent
from chronolet_schemas.podspec import Probe, RestartPolicy
from chronolet_schemas.prober import ProbeName, ProbeResult
from chronolet_schemas.registry import registered


@registered
class ProbingRequested(ContainerEvent, frozen=True, kw_only=True):
    """The container is running and its postStart hook has ended: start this probe.

    `started_at` is taken from the runtime's clock; `ip` is the pod's address, empty if it has none. `restarts` is the
    container's restart policy; `started`: the container counts as started (it has no startup probe, or that probe has
    succeeded). `definition`, from the spec of `digest`, has numeric ports and an expanded command. `field` is the
    container's path in the spec, as KubeEvents name it.
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
    """The container no longer has this probe, or no longer exists."""

    probe: ProbeName


@registered
class ProbingSkipped(ContainerEvent, frozen=True, kw_only=True):
    """No process of this node runs probes: the probe of the container `id` counts as successful.

    `digest` and `started_at` have the same meaning as in ProbingRequested.
    """

    id: str
    digest: str
    started_at: int
    probe: ProbeName


@registered
class ContainerProbed(ContainerEvent, frozen=True, kw_only=True):
    """The result of this probe has changed for the run of container `id` that began at `started_at`."""

    id: str
    started_at: int
    probe: ProbeName
    result: ProbeResult
