"""Metrics of served and made requests, named as in the kubelet and in client-go."""

from __future__ import annotations

import http.client
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry

from chronolet.adapters.kube_sinks.calls import HttpResponse, Unreachable
from chronolet.node.http.server import HttpServer, Response
from chronolet.node.metrics.requests import MeasuredCaller, RequestMetrics
from tests.support.scratch import wait_until


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> RequestMetrics:
    return RequestMetrics(registry)


def served(registry: CollectorRegistry, path: str) -> float | None:
    labels = {"long_running": "false", "method": "GET", "path": path, "server_type": "readonly"}
    return registry.get_sample_value("kubelet_http_requests_total", labels)


def test_served_requests_are_counted_by_page(registry: CollectorRegistry, metrics: RequestMetrics) -> None:
    """Paths without a page share one series, so that clients cannot create further series."""
    pages = {"/metrics/state": lambda _: Response(200, b"x")}
    server = HttpServer("127.0.0.1", 0, pages, served=metrics.served)
    server.start()
    try:
        for path in ("/metrics/state", "/nowhere", "/a/b"):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
        wait_until(lambda: served(registry, "other") == 2, "the last request")
        assert served(registry, "metrics/state") == 1
        duration = registry.get_sample_value(
            "kubelet_http_requests_duration_seconds_count",
            {"long_running": "false", "method": "GET", "path": "metrics/state", "server_type": "readonly"},
        )
        assert duration == 1
    finally:
        server.stop()


def test_made_requests_are_counted_by_code(registry: CollectorRegistry, metrics: RequestMetrics) -> None:
    statuses = iter((201, 0))

    def call(method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        status = next(statuses)
        if not status:
            raise Unreachable("down")
        return HttpResponse(status, {}, b"")

    caller = MeasuredCaller(call, "api:6443", metrics)
    assert caller("POST", "/x", {}, b"").status == 201
    with pytest.raises(Unreachable):
        caller("POST", "/x", {}, b"")
    for code in ("201", "<error>"):
        labels = {"code": code, "host": "api:6443", "method": "POST"}
        assert registry.get_sample_value("rest_client_requests_total", labels) == 1
    seconds = {"host": "api:6443", "verb": "POST"}
    assert registry.get_sample_value("rest_client_request_duration_seconds_count", seconds) == 2
