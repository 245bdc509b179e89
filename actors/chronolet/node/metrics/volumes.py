"""Metrics of volumes and of the operations on them, by the kubelet's names.

Input: pod events, the states of recovered pods, calls to `ports.pods.volumes` as timed by `measured_volumes`. Output:
metrics in a registry. Next: `metrics`. Source: pkg/kubelet/volumemanager/metrics, pkg/volume/util/metrics.go.
"""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.metrics import Counter, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from chronolet.pod.state import State
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Volume

ALL_PLUGINS = "all"
"""The label `volume_plugin` of a removal, which removes all volumes of a pod at once."""

_PLUGINS: Mapping[str, str] = {
    "host_path": "kubernetes.io/host-path",
    "empty_dir": "kubernetes.io/empty-dir",
    "secret": "kubernetes.io/secret",
    "config_map": "kubernetes.io/configmap",
    "downward_api": "kubernetes.io/downward-api",
    "projected": "kubernetes.io/projected",
    "image": "kubernetes.io/image",
}
_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LABELS = ["migrated", "operation_name", "status", "volume_plugin"]


def plugin(volume: Volume) -> str:
    """Return the kubelet's name of the volume's plugin; empty if chronolet has none for it."""
    return next((name for field, name in _PLUGINS.items() if getattr(volume, field) is not None), "")


class VolumeMetrics(Collector):
    """Metrics of volumes. Its methods are called on the threads of hosts, workers and scrapes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "storage_operation_duration_seconds",
            "Duration of operations on volumes",
            _LABELS,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._errors = Counter(
            "storage_operation_errors_total",
            "Operations on volumes that failed",
            ["operation_name", "volume_plugin"],
            registry=registry,
        )
        self._lock = threading.Lock()
        self._desired: dict[str, Sequence[str]] = {}
        """The plugins of each pod's volumes, by namespace/name."""
        self._actual: set[str] = set()
        """The pods whose volumes exist, because a container was created."""
        registry.register(self)

    def recovered(self, states: Mapping[str, State]) -> None:
        """Add the pods of a shard that this process hosts from now on."""
        with self._lock:
            for key, state in states.items():
                self._desire(key, state.manifest.spec.volumes)
                if any(one.id or one.exit is not None for one in state.containers):
                    self._actual.add(key)

    def leave(self, keys: Sequence[str]) -> None:
        """Drop the pods of a shard that this process no longer hosts, by namespace/name."""
        with self._lock:
            self._drop(*keys)

    def count(self, event: Event) -> None:
        """Follow a pod from its acceptance to its end."""
        match event:
            case pod.SpecAccepted(manifest=manifest):
                with self._lock:
                    self._desire(event.pod, manifest.spec.volumes)
            case pod.ContainerCreated() | pod.ContainerStarted():
                with self._lock:
                    self._actual.add(event.pod)
            case pod.PodEnded():
                with self._lock:
                    self._drop(event.pod)
            case _:
                pass

    def operated(self, operation: str, plugin_name: str, seconds: float, *, failed: bool) -> None:
        """Record one operation. `operation`: `volume_mount` or `volume_unmount`."""
        status = "fail-unknown" if failed else "success"
        self._seconds.labels("false", operation, status, plugin_name).observe(seconds)
        if failed:
            self._errors.labels(operation, plugin_name).inc()

    def collect(self) -> Iterator[Metric]:
        """Yield the number of volumes. Called for each scrape."""
        with self._lock:
            desired = Tally(name for names in self._desired.values() for name in names)
            actual = Tally(name for key in self._actual for name in self._desired.get(key, ()))
        found = GaugeMetricFamily(
            "volume_manager_total_volumes",
            "Volumes of pods: desired, and existing on the machine",
            labels=["plugin_name", "state"],
        )
        for name in _PLUGINS.values():
            found.add_metric([name, "desired_state_of_world"], desired[name])
            found.add_metric([name, "actual_state_of_world"], actual[name])
        yield found

    def _desire(self, key: str, volumes: Sequence[Volume]) -> None:
        self._desired[key] = [name for one in volumes if (name := plugin(one))]

    def _drop(self, *keys: str) -> None:
        for key in keys:
            self._desired.pop(key, None)
            self._actual.discard(key)
