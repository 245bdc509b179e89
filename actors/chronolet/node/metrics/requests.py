"""Metrics of HTTP requests: those that the agent serves, and those that it makes to servers that receive KubeEvents.

Input: finished requests. Output: metrics by the kubelet's and client-go's names. Next: `metrics`. Source:
pkg/kubelet/server/metrics, k8s.io/component-base/metrics/prometheus/restclient.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from prometheus_client.metrics import Counter, Histogram
from prometheus_client.registry import CollectorRegistry

from chronolet.adapters.kube_sinks.calls import Caller, HttpResponse

_NO_RESPONSE = "<error>"
"""client-go's value of `code` for a request without a response."""
_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SERVED = ["long_running", "method", "path", "server_type"]


class RequestMetrics:
    """Metrics of requests. Its methods are called on the threads of connections and workers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._served = Counter("kubelet_http_requests_total", "Requests served", _SERVED, registry=registry)
        self._served_seconds = Histogram(
            "kubelet_http_requests_duration_seconds",
            "Duration of requests served",
            _SERVED,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._made = Counter(
            "rest_client_requests_total",
            "Requests made, by status code of the response",
            ["code", "host", "method"],
            registry=registry,
        )
        self._made_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Duration of requests made",
            ["host", "verb"],
            buckets=_BUCKETS,
            registry=registry,
        )

    def served(self, method: str, path: str, seconds: float) -> None:
        """Record a request for a page. `path`: the page's path, or `other` for an unknown one."""
        labels = ("false", method, path.removeprefix("/"), "readonly")
        self._served.labels(*labels).inc()
        self._served_seconds.labels(*labels).observe(seconds)

    def made(self, method: str, host: str, code: str, seconds: float) -> None:
        """Record a request to another server."""
        self._made.labels(code, host, method).inc()
        self._made_seconds.labels(host, method).observe(seconds)


class MeasuredCaller:
    """Wraps another `Caller` and records each of its calls. `host`: the server's name and port."""

    def __init__(self, call: Caller, host: str, metrics: RequestMetrics) -> None:
        self._call = call
        self._host = host
        self._metrics = metrics

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        began, code = time.monotonic(), _NO_RESPONSE
        try:
            response = self._call(method, path, headers, body)
            code = str(response.status)
            return response
        finally:
            self._metrics.made(method, self._host, code, time.monotonic() - began)
