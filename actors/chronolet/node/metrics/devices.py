"""Metrics of device plugins and of PodResources requests.

Input: devices events, calls to Allocate and to PodResources. Output: metrics under the kubelet's names
(pkg/kubelet/metrics, pkg/kubelet/apis/podresources). Next: `metrics`.
"""

from __future__ import annotations

from prometheus_client.metrics import Counter, Gauge, Histogram
from prometheus_client.registry import CollectorRegistry

from chronolet.ports.devices.pod_resources import Method, Version
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

_METHODS: tuple[Method, ...] = ("list", "get", "get_allocatable")


class DeviceMetrics:
    """Metrics of devices. Its methods are called on the threads of hosts and gRPC servers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registrations = Counter(
            "kubelet_device_plugin_registration_total",
            "Registrations of device plugins, including refused ones",
            ["resource_name"],
            registry=registry,
        )
        self._allocation = Histogram(
            "kubelet_device_plugin_alloc_duration_seconds",
            "How long plugins took to answer Allocate",
            ["resource_name"],
            registry=registry,
        )
        self._requests = Counter(
            "kubelet_pod_resources_endpoint_requests_total",
            "Calls to PodResources",
            ["server_api_version"],
            registry=registry,
        )
        # Gauges, because the kubelet's names lack `_total`, which the client library appends to counters.
        self._by_method = {
            (method, failed): Gauge(
                f"kubelet_pod_resources_endpoint_{'errors' if failed else 'requests'}_{method}",
                f"Calls to PodResources {method}{' that failed' if failed else ''}, cumulative",
                ["server_api_version"],
                registry=registry,
            )
            for method in _METHODS
            for failed in (False, True)
        }

    def count(self, event: Event) -> None:
        """Count a committed event if the kubelet has a metric for it."""
        match event:
            case devices.PluginRegistered():
                self._registrations.labels(event.resource).inc()
            case devices.RegistrationRefused():
                self._registrations.labels(event.resource).inc(event.calls)
            case _:
                pass

    def allocate_took(self, resource: str, seconds: float) -> None:
        """Record the duration of one call to Allocate, successful or not."""
        self._allocation.labels(resource).observe(seconds)

    def count_request(self, version: Version, method: Method, failed: bool) -> None:
        """Count one call to PodResources."""
        self._requests.labels(version).inc()
        self._by_method[method, False].labels(version).inc()
        if failed:
            self._by_method[method, True].labels(version).inc()
