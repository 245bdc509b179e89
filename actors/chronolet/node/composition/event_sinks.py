"""Builds the configured KubeEvent sinks.

Input: settings. Output: adapters by sink name. Next: `kinds`.
"""

from __future__ import annotations

from chronolet.adapters.kube_sinks import KubernetesSink, LogSink, StreamSink, WebhookSink
from chronolet.adapters.kube_sinks.calls import CALL_SECONDS, Caller, HttpCaller
from chronolet.adapters.kube_sinks.kubernetes import Pace
from chronolet.node.metrics.requests import MeasuredCaller, RequestMetrics
from chronolet.node.settings.table import Settings
from chronolet.ports.kube_sinks import Sink


def sinks(settings: Settings, metrics: RequestMetrics, call_seconds: float = CALL_SECONDS) -> dict[str, Sink]:
    """Build the sinks that the settings select, by name. `call_seconds` is the time-out of a call; `metrics` counts the
    calls to servers.
    """

    def measured(url: str, ca_file: str = "") -> Caller:
        caller = HttpCaller(url, ca_file=ca_file, seconds=call_seconds)
        return MeasuredCaller(caller, caller.where.partition("://")[2], metrics)

    found: dict[str, Sink] = {}
    if "redis" in settings.event_sinks:
        found["redis"] = StreamSink(
            settings.redis_url,
            settings.node,
            keep_milliseconds=settings.event_ttl,
            length=settings.event_stream_length,
        )
    if "log" in settings.event_sinks:
        found["log"] = LogSink()
    if settings.event_webhook_url:
        caller = measured(settings.event_webhook_url)
        found["webhook"] = WebhookSink(caller, settings.node, settings.event_webhook_secret_file)
    if settings.event_api_server:
        url = settings.event_api_server.rstrip("/")
        caller = measured(url, settings.event_api_ca_file)
        pace = Pace(settings.event_qps, settings.event_burst)
        found["kubernetes"] = KubernetesSink(caller, settings.node, settings.event_api_token_file, pace)
    return found
