"""Metrics of KubeEvents and their delivery.

Input: kube_events events. Output: counters in a registry. For every sink, the number of posts is the sum of those
delivered, dropped, and waiting. Next: `metrics`.
"""

from __future__ import annotations

from prometheus_client.metrics import Counter
from prometheus_client.registry import CollectorRegistry

from chronolet_schemas import kube_events


class EventMetrics:
    """KubeEvent counters; the kubelet has no counterparts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.recorded = Counter(
            "chronolet_kube_events_recorded_total", "KubeEvents passed to the correlator", registry=registry
        )
        self.suppressed = Counter(
            "chronolet_kube_events_suppressed_total", "KubeEvents that the spam filter dropped", registry=registry
        )
        self.posts = Counter(
            "chronolet_kube_event_posts_total", "New and changed KubeEvents, for every sink", registry=registry
        )
        self.deliveries = Counter(
            "chronolet_kube_event_deliveries_total",
            "Posts by sink: delivered, or given up and why; and failed attempts",
            ["sink", "outcome"],
            registry=registry,
        )

    def count(self, event: kube_events.Correlated | kube_events.SinkEvent) -> None:
        """Count one committed event."""
        match event:
            case kube_events.Correlated():
                self.recorded.inc(event.heard)
                self.suppressed.inc(event.suppressed)
                self.posts.inc(len(event.posts))
            case kube_events.Delivered():
                self.deliveries.labels(event.sink, "delivered").inc(event.count)
            case kube_events.GivenUp():
                self.deliveries.labels(event.sink, f"given_up_{event.reason}").inc(event.count)
            case kube_events.DeliveryFailed():
                self.deliveries.labels(event.sink, "failed").inc()
            case _:
                pass
