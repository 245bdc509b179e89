"""Metrics of container and image garbage collection.

Input: committed events, passed on by `metrics`. Output: counters, histograms and a gauge in the process's registry.
Names and labels are those of the kubelet's metrics, or those proposed for its image collection; all other names begin
with `chronolet_`. Next: `metrics`. Source: pkg/kubelet/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.metrics import Counter, Gauge, Histogram
from prometheus_client.registry import CollectorRegistry

from chronolet_schemas import container_gc, image_gc
from chronolet_schemas.envelope import Event

_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 120, 300)
_BYTES = tuple(2.0**n for n in range(20, 42, 2))
_SKIPPED = {"in_use": "in_use", "young": "min_age", "pinned": "pinned"}


class GcMetrics:
    """Metrics of container and image garbage collection."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.collected = Counter(
            "kubelet_image_garbage_collected_total",
            "Images collected, by reason: space or age",
            ["reason"],
            registry=registry,
        )
        self.attempts = Counter(
            "kubelet_image_gc_attempts_total",
            "Image collection runs; reason explains why a run removed nothing or failed",
            ["operation", "trigger", "result", "reason"],
            registry=registry,
        )
        labels = ["operation", "trigger", "result"]
        self.seconds = Histogram(
            "kubelet_image_gc_duration_seconds", "Duration of a run", labels, buckets=_SECONDS, registry=registry
        )
        self.freed = Histogram(
            "kubelet_image_gc_freed_bytes", "Bytes a run freed", labels[:2], buckets=_BYTES, registry=registry
        )
        self.target = Histogram(
            "kubelet_image_gc_target_bytes", "Bytes a run had to free", labels[:2], buckets=_BYTES, registry=registry
        )
        self.deletions = Counter(
            "kubelet_image_gc_image_deletions_total",
            "Images that a run removed or failed to remove",
            ["operation", "trigger", "reason", "result"],
            registry=registry,
        )
        self.skipped = Counter(
            "kubelet_image_gc_skipped_images_total",
            "Images that a run kept",
            ["operation", "trigger", "reason"],
            registry=registry,
        )
        self.usage = Gauge(
            "kubelet_image_gc_image_fs_usage_percent",
            "Usage of the image file system in percent before the last run",
            ["phase"],
            registry=registry,
        )
        self.container_runs = Counter(
            "chronolet_container_gc_runs_total",
            "Container collection runs",
            ["trigger", "result"],
            registry=registry,
        )
        self.container_seconds = Histogram(
            "chronolet_container_gc_duration_seconds", "Duration of a run", buckets=_SECONDS, registry=registry
        )
        self.removals = Counter(
            "chronolet_container_gc_removals_total",
            "Dead containers, sandboxes and log folders that a run removed or failed to remove",
            ["what", "rule", "result"],
            registry=registry,
        )
        self._run: image_gc.RunStarted | None = None

    def count(self, event: Event) -> None:
        """Count a committed event; events of other kinds are ignored."""
        match event:
            case image_gc.RunStarted():
                self._run = event
            case image_gc.ImageRemoved() | image_gc.ImageNotRemoved():
                self._image(event)
            case image_gc.RunFinished():
                self._run_of_images(event)
            case container_gc.Removed() | container_gc.NotRemoved():
                result = "success" if isinstance(event, container_gc.Removed) else "error"
                self.removals.labels(event.what, event.rule, result).inc()
            case container_gc.RunFinished():
                self.container_runs.labels(event.trigger, "error" if event.error else "success").inc()
                self.container_seconds.observe(event.milliseconds / 1000)
            case _:
                return

    def _image(self, event: image_gc.ImageRemoved | image_gc.ImageNotRemoved) -> None:
        removed = isinstance(event, image_gc.ImageRemoved)
        if removed:  # the kubelet has only these two reasons
            self.collected.labels("age" if event.reason == "age" else "space").inc()
        # A process that took over the run has not seen its start.
        run = self._run if self._run is not None and self._run.run == event.run else None
        operation, trigger = (run.operation, run.trigger) if run else ("unknown", "unknown")
        self.deletions.labels(operation, trigger, event.reason, "success" if removed else "error").inc()

    def _run_of_images(self, event: image_gc.RunFinished) -> None:
        result = "error" if event.error else "success" if event.removed else "noop"
        self.attempts.labels(event.operation, event.trigger, result, _reason(event)).inc()
        self.seconds.labels(event.operation, event.trigger, result).observe(event.milliseconds / 1000)
        self.freed.labels(event.operation, event.trigger).observe(event.freed_bytes)
        if event.wanted_bytes:
            self.target.labels(event.operation, event.trigger).observe(event.wanted_bytes)
        for reason, count in _skipped(event).items():
            self.skipped.labels(event.operation, event.trigger, reason).inc(count)
        if event.capacity_bytes:
            self.usage.labels("before").set(event.usage_percent)


def _reason(event: image_gc.RunFinished) -> str:
    """Return the `reason` label, which explains the run's result."""
    if event.error:
        return "deletion_failed" if event.failed else "insufficient" if event.wanted_bytes else "no_figures"
    return "freed" if event.removed else "below_threshold" if event.operation == "collect" else "nothing_unused"


def _skipped(event: image_gc.RunFinished) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for why, count in event.kept.items():
        reason = _SKIPPED.get(why, "other")
        found[reason] = found.get(reason, 0) + count
    return found
