"""Which sinks KubeEvents go to, and how each is treated.

Comes in: settings. Goes out: adapters and rules by the sink's name. Next: `wiring`.
"""

from __future__ import annotations

from chronolet.adapters.kube_sinks import KubernetesSink, LogSink, StreamSink, WebhookSink
from chronolet.adapters.kube_sinks.calls import HttpCaller
from chronolet.adapters.kube_sinks.kubernetes import Pace
from chronolet.kube_events.policy import Policy, Rules
from chronolet.node.settings.table import Settings
from chronolet.ports.kube_sinks import Sink

_LOCAL_BACKLOG = 10_000
"""What is on this node, or in the node's Redis, comes along as fast as events are recorded. What is given up there all
the same would have left the stream at once.
"""


def sinks(settings: Settings) -> dict[str, Sink]:
    """The sinks that the settings name."""
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
        caller = HttpCaller(settings.event_webhook_url)
        found["webhook"] = WebhookSink(caller, settings.node, settings.event_webhook_secret_file)
    if settings.event_api_server:
        caller = HttpCaller(settings.event_api_server.rstrip("/"), ca_file=settings.event_api_ca_file)
        pace = Pace(settings.event_qps, settings.event_burst)
        found["kubernetes"] = KubernetesSink(caller, settings.node, settings.event_api_token_file, pace)
    return found


def policy(settings: Settings, named: dict[str, Sink], pause: int) -> Policy:
    """How they are delivered to; `pause` before a try is made again, in milliseconds."""
    return Policy(sinks={name: _rules(settings, sink, pause) for name, sink in named.items()})


def _rules(settings: Settings, sink: Sink, pause: int) -> Rules:
    if sink.at_once > 1:
        return Rules(backlog=max(_LOCAL_BACKLOG, settings.event_stream_length), batch=sink.at_once, pause=pause)
    return Rules(backlog=settings.event_backlog, pause=pause)
