"""The agent's Prometheus metrics: all names, and how they are updated.

Input: observer calls from the kernel, calls to the runtime, and what each relist finds. Output: the text of /metrics.
Names and labels are the kubelet's if it has the metric (pkg/kubelet/metrics), else they begin with `chronolet_`.
Next: `node.http.server`, which serves it to Prometheus.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from prometheus_client.metrics import Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from chronolet.kernel.observer import Observer, Outcome, Queue
from chronolet.node.http.recent_spans import RecentSpans
from chronolet.node.http.server import Query, Response
from chronolet.node.metrics.devices import DeviceMetrics
from chronolet.node.metrics.events import EventMetrics
from chronolet.node.metrics.gc import GcMetrics
from chronolet.node.metrics.pods import PodMetrics
from chronolet.node.metrics.probes import CONTENT_TYPE, ProbeMetrics
from chronolet.pod.state import STATUS_UNKNOWN
from chronolet.ports.spans import TURN, Span
from chronolet.prober.actor import key as prober_key
from chronolet_schemas import kube_events, pleg, pod, prober
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

_OPERATION_BUCKETS = tuple(0.005 * 2.5**n for n in range(14))
_STEP_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)

CONTAINER_STATES = ("created", "running", "exited", "unknown")


class Metrics(Observer):
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
        self._chronolet()
        self.probes = ProbeMetrics(self.registry)
        self.kube_events = EventMetrics(self.registry)
        self.collection = GcMetrics(self.registry)
        self.devices = DeviceMetrics(self.registry)
        self._pods = PodMetrics(self.registry)

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

    def _chronolet(self) -> None:
        registry = self.registry
        self.steps = Counter("chronolet_steps_total", "Steps committed", ["shard"], registry=registry)
        self.refused_steps = Counter(
            "chronolet_steps_refused_total", "Steps that the store refused", ["shard", "reason"], registry=registry
        )
        self.step_seconds = Histogram(
            "chronolet_step_duration_seconds", "Duration of a commit", buckets=_STEP_BUCKETS, registry=registry
        )
        self.events = Counter("chronolet_events_total", "Events written to the log", ["kind"], registry=registry)
        self.effects_running = Gauge(
            "chronolet_effects_running", "Effects running now", ["kind", "effect"], registry=registry
        )
        self.effects = Counter(
            "chronolet_effects_total", "Effects that ended", ["kind", "effect", "outcome"], registry=registry
        )
        self.effect_seconds = Histogram(
            "chronolet_effect_duration_seconds", "Duration of effects", ["kind"], registry=registry
        )
        self.effect_waits = Histogram(
            "chronolet_effect_wait_seconds", "Time that effects waited in a queue", ["kind"], registry=registry
        )
        self.exits_unknown = Counter(
            "chronolet_container_exits_unknown_total",
            "Containers that vanished before their exit was observed",
            registry=registry,
        )
        self.dead_letters = Counter(
            "chronolet_dead_letters_total", "Messages moved to the dead letters", ["kind"], registry=registry
        )
        self.restarts = Counter("chronolet_host_restarts_total", "Host restarts", ["shard"], registry=registry)
        self.shards = Gauge("chronolet_shards_owned", "Shards hosted by this process", registry=registry)
        self.lease = Gauge("chronolet_lease_valid", "1 while this process may run effects", registry=registry)
        self.recoveries = Counter("chronolet_recoveries_total", "Recoveries", registry=registry)
        self.recovery_seconds = Gauge(
            "chronolet_recovery_duration_seconds", "Duration of the last recovery", registry=registry
        )
        self.recovered_events = Counter(
            "chronolet_recovered_events_total", "Log entries read by recoveries", registry=registry
        )

    # -- the kernel's observer -------------------------------------------------------------------------------------
    def step_done(self, shard: Shard, events: Sequence[Event], seconds: float) -> None:
        """Count a step and its events, also in the kubelet's metrics."""
        self.steps.labels(str(shard)).inc()
        self.step_seconds.observe(seconds)
        if events:
            self.events.labels(shard.kind).inc(len(events))
        for event in events:
            self._count(event)
            self.collection.count(event)
            self._pods.count(event)

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

    def step_refused(self, shard: Shard, reason: Literal["fenced", "conflict"]) -> None:
        """Count a step that the store refused."""
        self.refused_steps.labels(str(shard), reason).inc()

    def effect_waited(self, kind: str, entity: str, cause: str, seconds: float) -> None:
        """Record, also as a span, how long an effect waited in its queue."""
        self.effect_waits.labels(kind).observe(seconds)
        self._turn_over(entity, cause, seconds)

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

    def effect_started(self, kind: str, effect: str) -> None:
        """Count a running effect."""
        self.effects_running.labels(kind, effect).inc()

    def effect_done(self, kind: str, effect: str, seconds: float, outcome: Outcome) -> None:
        """Count a finished effect and record its duration."""
        self.effects_running.labels(kind, effect).dec()
        self.effects.labels(kind, effect, outcome).inc()
        self.effect_seconds.labels(kind).observe(seconds)
        if kind == "pod":
            self._pods.worked(effect, seconds)

    def dead_lettered(self, kind: str) -> None:
        """Count a dead letter."""
        self.dead_letters.labels(kind).inc()

    def host_restarted(self, shard: Shard) -> None:
        """Count a host restart."""
        self.restarts.labels(str(shard)).inc()

    def shards_owned(self, count: int) -> None:
        """Set the number of shards hosted by this process."""
        self.shards.set(count)

    def shard_lost(self, shard: Shard, keys: Collection[str]) -> None:
        """Drop the series of the shard's probes: its next owner counts them from now on."""
        if shard.kind == "prober":
            self.probes.leave(keys)

    def lease_valid(self, valid: bool) -> None:
        """Set whether the lease is valid."""
        self.lease.set(int(valid))

    def recovered(self, shards: int, events: int, seconds: float) -> None:  # noqa: ARG002 - see `shards_owned`
        """Count a recovery and its log entries; set its duration."""
        self.recoveries.inc()
        self.recovered_events.inc(events)
        self.recovery_seconds.set(seconds)

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
