"""The dependencies of a pod's workers, and the operations that several workers share.

Input: adapters. Output: `PodDependencies`, which each worker receives. Next: `sandboxes`, `containers`, `hooks`,
`exits`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog
from msgspec import Struct, field

from chronolet.kernel.kind import EffectContext
from chronolet.pod import wanted
from chronolet.pod.workers.images.ensure import Pulls
from chronolet.pod.workers.known_containers import KnownContainers, MainProcess
from chronolet.pod.workers.timing import Timing
from chronolet.ports.devices.cdi import Cdi
from chronolet.ports.machine.cgroups import CgroupRefusal, ContainerCgroups
from chronolet.ports.machine.host import Host
from chronolet.ports.machine.kernel_log import Kills, NoKills
from chronolet.ports.pods.pod_logs import ContainerLog, NoPodLogs, PodLogs, PodLogsRefusal, folder_of
from chronolet.ports.pods.requests import Requests
from chronolet.ports.pods.specs import KeptSpec, Specs
from chronolet.ports.pods.volumes import Volumes
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.processes import NoProcesses, Processes
from chronolet.ports.runtime.runtime import BuiltImage, ContainerState, Refusal, Runtime
from chronolet.ports.spans import NoSpans, Spans
from chronolet.rules.downward import Place
from chronolet.rules.resources.cgroups import Values
from chronolet.rules.resources.container_limits import Holding
from chronolet.rules.resources.qos_class import least_oom_score_adj

log = structlog.get_logger("chronolet.pod")


class PodDependencies(Struct, frozen=True):
    """The adapters and settings that all pods of a process share. `builtin` builds an image that is in no registry;
    `run` returns the id of the log's run.
    """

    runtime: Runtime
    volumes: Volumes
    node: str
    pause_image: str
    builtin: Callable[[str], BuiltImage | None]
    specs: Specs
    requests: Requests
    pulls: Pulls
    host: Host
    cdi: Cdi
    cgroups: ContainerCgroups
    logs: PodLogs = field(default_factory=NoPodLogs)
    kills: Kills = field(default_factory=NoKills)
    holding: Holding = field(default_factory=Holding)
    run: Callable[[], str] = lambda: ""
    spans: Spans = field(default_factory=NoSpans)
    processes: Processes = field(default_factory=NoProcesses)
    timing: Timing = Timing()
    created: KnownContainers[str] = field(default_factory=KnownContainers)
    """Digests of the containers that were created ahead of their start, by container id."""
    main_processes: KnownContainers[MainProcess] = field(default_factory=KnownContainers)
    """Main processes of the containers that were started, by container id."""

    def fenced(self, context: EffectContext) -> FencedRuntime:
        """Return the runtime, fenced for one run of one effect."""
        return FencedRuntime(self.runtime, context, self.spans)

    def keep(
        self, effect: wanted.StartSandbox | wanted.KeepSpec | wanted.StartContainer, context: EffectContext
    ) -> None:
        """Store the manifest on disk before any of its containers run, so that it survives a loss of the log.

        Raises `SpecRefusal`.
        """
        context.fence("spec.keep")
        self.specs.keep(
            KeptSpec(
                node=self.node,
                pod=effect.pod,
                uid=effect.uid,
                source=effect.origin.source,
                digest=effect.origin.digest,
                accepted_at=effect.origin.accepted_at,
                manifest=effect.manifest,
            )
        )
        context.done("spec.keep")

    def link_log(self, effect: wanted.StartContainer, container_id: str, context: EffectContext) -> None:
        """Link the container's log into the folder that log shippers read. A failure is logged and does not fail the
        container.
        """
        context.fence("logs.link")
        try:
            one = ContainerLog(pod=effect.pod, uid=effect.uid, container=effect.container, id=container_id)
            self.logs.link(one, effect.attempt, self.runtime.log_path(container_id))
        except (PodLogsRefusal, Refusal) as refusal:
            log.warning("cannot link a container's log", pod=effect.pod, error=str(refusal))

    def remove_logs(self, effect: wanted.Cleanup, going: Sequence[ContainerState]) -> None:
        """Remove the pod's log folder, and the links to the logs of the containers `going`, which are about to be
        removed; `container_gc` removes any that remain.
        """
        try:
            for one in going:
                container = one.labels.get(labels.CONTAINER_NAME, "")
                self.logs.unlink(ContainerLog(pod=effect.pod, uid=effect.uid, container=container, id=one.id))
            self.logs.remove_folder(folder_of(effect.pod, effect.uid))
        except PodLogsRefusal as refusal:
            log.warning("cannot remove links to a pod's logs", pod=effect.pod, error=str(refusal))

    def hold(self, container_id: str, values: Values) -> None:
        """Write these cgroup values for a running container. A failure is logged; the container runs without them.

        Not fenced: the effect may end at any time, because any notification that the container is running ends it. The
        write is idempotent, and all writers write the same values.
        """
        if values == Values():
            return
        try:
            found = self.runtime.inspect(container_id)
            if found is not None and found.state == "running":
                self.cgroups.hold(found.pid, found.id, values)
        except (CgroupRefusal, Refusal) as refusal:
            log.warning("cannot set a container's cgroup values", container=container_id, error=str(refusal))

    def place(self, effect: wanted.ContainerEffect) -> Place:
        """Return the node's facts that a container may see through the downward API, and those that its spec depends
        on.
        """
        return Place(
            node=self.node,
            host_ip=self.host.address(),
            pod_ip=effect.sandbox_ip,
            cpu_milli=self.host.cpu_milli(),
            memory_bytes=self.host.memory_bytes(),
            storage_bytes=self.host.storage_bytes(),
            least_oom_score_adj=least_oom_score_adj(self.host.missing_capabilities()),
        )


def milliseconds_now() -> int:
    """Return the wall-clock time in milliseconds since the epoch, the unit of deadlines."""
    return time.time_ns() // 1_000_000
