"""What a pod's workers touch, and what several of them do with it.

Comes in: adapters. Goes out: `Outside`, handed to each worker. Next: `sandboxes`, `containers`, `hooks`, `exits`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog
from msgspec import Struct, field

from chronolet.kernel.kind import EffectContext
from chronolet.pod import wanted
from chronolet.pod.workers.images import Pulls
from chronolet.pod.workers.recent import Begun, Recent
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


class Outside(Struct, frozen=True):
    """What pods touch, and what is the same for all of them. `builtin` builds an image that no registry has; `run` is
    the log's.
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
    created: Recent[str] = field(default_factory=Recent)
    """The digest of each container that was created ahead of its start."""
    begun: Recent[Begun] = field(default_factory=Recent)
    """What is known of each container that was started."""

    def fenced(self, context: EffectContext) -> FencedRuntime:
        """The runtime for one run of one effect."""
        return FencedRuntime(self.runtime, context, self.spans)

    def keep(
        self, effect: wanted.StartSandbox | wanted.KeepSpec | wanted.StartContainer, context: EffectContext
    ) -> None:
        """The manifest lies on the disk before anything of it runs: who finds the log lost, finds it there.

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
        """Where log shippers look, there is a link to its output. No container fails for want of one."""
        context.fence("logs.link")
        try:
            one = ContainerLog(pod=effect.pod, uid=effect.uid, container=effect.container, id=container_id)
            self.logs.link(one, effect.attempt, self.runtime.log_path(container_id))
        except (PodLogsRefusal, Refusal) as refusal:
            log.warning("no link to a container's log", pod=effect.pod, error=str(refusal))

    def remove_logs(self, effect: wanted.Cleanup, going: Sequence[ContainerState]) -> None:
        """What leads to the logs of a pod's containers, which go next; what stays is removed by `container_gc`."""
        try:
            for one in going:
                container = one.labels.get(labels.CONTAINER_NAME, "")
                self.logs.unlink(ContainerLog(pod=effect.pod, uid=effect.uid, container=container, id=one.id))
            self.logs.remove_folder(folder_of(effect.pod, effect.uid))
        except PodLogsRefusal as refusal:
            log.warning("links to a pod's logs are left", pod=effect.pod, error=str(refusal))

    def hold(self, container_id: str, values: Values) -> None:
        """A container that runs has these values. What the kernel refuses is said: the container runs all the same.

        Not fenced: the word that it runs, which others bring too, ends the effect that started it; and whoever writes
        these values, and however often, writes the same.
        """
        if values == Values():
            return
        try:
            found = self.runtime.inspect(container_id)
            if found is not None and found.state == "running":
                self.cgroups.hold(found.pid, found.id, values)
        except (CgroupRefusal, Refusal) as refusal:
            log.warning("a container runs without all that was to hold it", container=container_id, error=str(refusal))

    def place(self, effect: wanted.ContainerEffect) -> Place:
        """Where a pod's container runs, as it may be told."""
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
    """The wall clock, as deadlines are written."""
    return time.time_ns() // 1_000_000
