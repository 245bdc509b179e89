"""The metrics of KubeEvents, and how they move.

Input: events of kube_events. Output: counters in a registry. For every sink: posts are what it took, what it is
given up for, and what waits. Next: `metrics`.
"""

from __future__ import annotations

from prometheus_client.metrics import Counter
from prometheus_client.registry import CollectorRegistry

from chronolet_schemas import kube_events


class EventFigures:
    """No metric of the kubelet's counts these."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.recorded = Counter(
            "chronolet_kube_events_recorded_total", "KubeEvents told to the correlator", registry=registry
        )
        self.suppressed = Counter(
            "chronolet_kube_events_suppressed_total", "KubeEvents that the spam filter kept back", registry=registry
        )
        self.posts = Counter(
            "chronolet_kube_event_posts_total", "New and changed KubeEvents, for every sink", registry=registry
        )
        self.deliveries = Counter(
            "chronolet_kube_event_deliveries_total",
            "Posts that a sink took, or is given up for and why; tries that failed",
            ["sink", "outcome"],
            registry=registry,
        )

    def count(self, event: kube_events.Correlated | kube_events.SinkEvent) -> None:
        """One more event of the log."""
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
