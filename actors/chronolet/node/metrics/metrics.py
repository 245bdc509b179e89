"""The agent's Prometheus metrics by the kubelet's names, and how they are updated; `kernel` has those of the kernel.

Input: observer calls from the kernel, calls to the runtime, and what each relist finds. Output: the text of /metrics.
Names and labels are the kubelet's if it has the metric (pkg/kubelet/metrics), else they begin with `chronolet_`.
Next: `node.http.server`, which serves it to Prometheus.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from prometheus_client.metrics import Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from chronolet.kernel.observer import Backlog, Outcome, Queue
from chronolet.node.http.recent_spans import RecentSpans
from chronolet.node.http.server import Query, Response
from chronolet.node.metrics.archive import ArchiveMetrics
from chronolet.node.metrics.devices import DeviceMetrics
from chronolet.node.metrics.events import EventMetrics
from chronolet.node.metrics.gc import GcMetrics
from chronolet.node.metrics.kernel import KernelMetrics
from chronolet.node.metrics.pods import PodMetrics
from chronolet.node.metrics.probes import CONTENT_TYPE, ProbeMetrics
from chronolet.node.metrics.requests import RequestMetrics
from chronolet.node.metrics.volumes import VolumeMetrics
from chronolet.node.metrics.worker_starts import WorkerStarts
from chronolet.pod.state import STATUS_UNKNOWN
from chronolet.ports.spans import TURN, Span
from chronolet.prober.actor import key as prober_key
from chronolet_schemas import kube_events, pleg, pod, prober
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

_OPERATION_BUCKETS = tuple(0.005 * 2.5**n for n in range(14))

CONTAINER_STATES = ("created", "running", "exited", "unknown")


class Metrics(KernelMetrics):
    """The process's metrics; implements the kernel's `Observer`."""

    def __init__(self, node: str) -> None:
        # The kubelet exports no `_created` series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.spans = RecentSpans()
        ProcessCollector(registry=self.registry)
        self._kubelet(node)
        self._pleg()
        self._qos()
        super().__init__(self.registry)
        self.exits_unknown = Counter(
            "chronolet_container_exits_unknown_total",
            "Containers that vanished before their exit was observed",
            registry=self.registry,
        )
        self.probes = ProbeMetrics(self.registry)
        self.kube_events = EventMetrics(self.registry)
        self.collection = GcMetrics(self.registry)
        self.devices = DeviceMetrics(self.registry)
        self.archive = ArchiveMetrics(self.registry)
        self._pods = PodMetrics(self.registry)
        self._worker_starts = WorkerStarts(self.registry)
        self.on_event: Callable[[Event], None] = lambda _: None
        """Called with each committed event, on the hosts' threads. The maker of traces, if there is one, sets it."""
        self.volumes = VolumeMetrics(self.registry)
        self.requests = RequestMetrics(self.registry)

    def _kubelet(self, node: str) -> None:
        registry = self.registry
        Gauge("kubelet_node_name", "The node's name", ["node"], registry=registry).labels(node).set(1)
        self.running_pods = Gauge("kubelet_running_pods", "Pods whose sandbox runs", registry=registry)
        self.running_containers = Gauge(
            "kubelet_running_containers", "Containers by state", ["container_state"], registry=registry
        )
        self.started_pods = Counter(
            "kubelet_started_pods_total", "Pods whose sandbox was started, cumulative", registry=registry
        )
        self.started_pods_errors = Counter(
            "kubelet_started_pods_errors_total", "Sandboxes that could not be started, cumulative", registry=registry
        )
        self.started_containers = Counter(
            "kubelet_started_containers_total", "Containers started, cumulative", ["container_type"], registry=registry
        )
        self.started_containers_errors = Counter(
            "kubelet_started_containers_errors_total",
            "Containers that could not be started, cumulative",
            ["container_type", "code"],
            registry=registry,
        )
        self.operations = Counter(
            "kubelet_runtime_operations_total", "Calls to the runtime", ["operation_type"], registry=registry
        )
        self.operation_errors = Counter(
            "kubelet_runtime_operations_errors_total",
            "Calls to the runtime that failed",
            ["operation_type"],
            registry=registry,
        )
        self.operation_seconds = Histogram(
            "kubelet_runtime_operations_duration_seconds",
            "Duration of calls to the runtime",
            ["operation_type"],
            buckets=_OPERATION_BUCKETS,
            registry=registry,
        )

    def _qos(self) -> None:
        self.cgroup_seconds = Histogram(
            "kubelet_cgroup_manager_duration_seconds",
            "Time to create, change or remove a cgroup",
            ["operation_type"],
            registry=self.registry,
        )
        self.cgroup_version = Gauge(
            "kubelet_cgroup_version", "Version of the cgroups that limit pods, 0 for none", registry=self.registry
        )

    def _pleg(self) -> None:
        self.relist_seconds = Histogram(
            "kubelet_pleg_relist_duration_seconds", "Duration of a relist", registry=self.registry
        )
        self.relist_interval = Histogram(
            "kubelet_pleg_relist_interval_seconds", "Time between two relists", registry=self.registry
        )
        self.pleg_seen = Gauge(
            "kubelet_pleg_last_seen_seconds", "When PLEG was last seen active, in unix seconds", registry=self.registry
        )
        self._last_relist = 0.0

    # -- the kernel's observer -------------------------------------------------------------------------------------
    def step_done(self, shard: Shard, events: Sequence[Event], seconds: float) -> None:
        """Count a step and its events, also in the kubelet's metrics."""
        super().step_done(shard, events, seconds)
        for event in events:
            self.on_event(event)
            self._count(event)
            self.collection.count(event)
            self.archive.count(event)
            self._pods.count(event)
            self.volumes.count(event)
            self._worker_starts.count(event)

    def _count(self, event: Event) -> None:
        match event:
            case pod.SandboxStarted():
                self.started_pods.inc()
            case pod.SandboxStartFailed():
                self.started_pods_errors.inc()
            case pod.ContainerStarted():
                self.started_containers.labels("container").inc()
            case pod.ContainerStartFailed(reason=reason):
                self.started_containers_errors.labels("container", reason).inc()
            case pod.ContainerExited(reason=reason) if reason == STATUS_UNKNOWN:
                self.exits_unknown.inc()
            case pleg.ProbeKillEvent():
                self.probes.kill(event)
            case prober.ProbeRemoved():
                self.probes.leave((prober_key(event.pod, event.container, event.probe),))
            case kube_events.Correlated() | kube_events.SinkEvent():
                self.kube_events.count(event)
            case _:
                self.devices.count(event)

    def effect_waited(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """Record, also as a span, how long an effect waited in its queue."""
        super().effect_waited(kind, entity, cause, seconds)
        self._turn_over(entity, cause, seconds)
        if kind == "pod":
            self._worker_starts.worked(entity)

    def effect_queued(self, kind: str, entity: str, cause: str, queue: Queue) -> None:  # noqa: ARG002
        """Begin a span for an effect that waits in a queue."""
        if cause:
            self.spans.begin(Span(entity=entity, cause=cause, what=TURN, at=_now(), over=False, queue=queue))

    def effect_withdrawn(self, kind: str, entity: str, cause: str, seconds: float) -> None:  # noqa: ARG002
        """End the span of an effect that was withdrawn while it waited."""
        self._turn_over(entity, cause, seconds)

    def _turn_over(self, entity: str, cause: str, seconds: float) -> None:
        if cause:
            took = seconds * 1000
            span = Span(entity=entity, cause=cause, what=TURN, at=_now() - round(took), milliseconds=took)
            self.spans.note(span)

    def effect_done(
        self, kind: str, effect: str, seconds: float, outcome: Outcome, *, began: float = 0.0, standing: bool = False
    ) -> None:
        """Count a finished effect, also as work on a pod."""
        super().effect_done(kind, effect, seconds, outcome, began=began, standing=standing)
        if kind == "pod":
            self._pods.worked(effect, seconds)

    def shard_acquired(self, shard: Shard, states: Mapping[str, Any], backlog: Callable[[], Backlog]) -> None:
        """Count a started host; count the volumes of its pods from now on."""
        super().shard_acquired(shard, states, backlog)
        if shard.kind == "pod":
            self.volumes.recovered(states)

    def shard_lost(self, shard: Shard, keys: Collection[str]) -> None:
        """Drop the series of the shard's probes and volumes: its next owner counts them from now on."""
        super().shard_lost(shard, keys)
        if shard.kind == "prober":
            self.probes.leave(keys)
        if shard.kind == "pod":
            self.volumes.leave(tuple(keys))

    # -- the runtime -----------------------------------------------------------------------------------------------
    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Count and time one call to the runtime; a call that raises is an error."""
        self.operations.labels(name).inc()
        began = time.monotonic()
        try:
            yield
        except BaseException:
            self.operation_errors.labels(name).inc()
            raise
        finally:
            self.operation_seconds.labels(name).observe(time.monotonic() - began)

    @contextmanager
    def relist(self) -> Iterator[None]:
        """Time one relist and the interval since the previous one. A relist that raises does not update `pleg_seen`."""
        began = time.monotonic()
        if self._last_relist:
            self.relist_interval.observe(began - self._last_relist)
        self._last_relist = began
        try:
            yield
            self.pleg_seen.set_to_current_time()
        finally:
            self.relist_seconds.observe(time.monotonic() - began)

    # -- cgroups -----------------------------------------------------------------------------------------------------
    def cgroup(self, operation: str, seconds: float) -> None:
        """Record how long it took to create, change or remove one cgroup."""
        self.cgroup_seconds.labels(operation).observe(seconds)

    def running(self, pods: int, containers: Mapping[str, int]) -> None:
        """Set the number of running pods, and the number of containers in each state."""
        self.running_pods.set(pods)
        for state in CONTAINER_STATES:
            self.running_containers.labels(state).set(containers.get(state, 0))

    # -- the page --------------------------------------------------------------------------------------------------
    def page(self, query: Query) -> Response:
        """Render the page /metrics."""
        del query
        from prometheus_client.exposition import generate_latest  # noqa: PLC0415 - loads servers that are not needed

        return Response(200, generate_latest(self.registry), CONTENT_TYPE)


def _now() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
