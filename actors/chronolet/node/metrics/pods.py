"""Metrics of pod start times and of the duration of work on pods.

Input: pod events, finished effects. Output: metrics under the kubelet's names (pkg/kubelet/metrics). Next: `metrics`.
A pod's start is counted only if this process observed it from acceptance on.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from prometheus_client.metrics import Histogram
from prometheus_client.registry import CollectorRegistry

from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

_START_BUCKETS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360),
    *(480, 600, 900, 1200, 1800, 2700, 3600),
)
_OPERATIONS: Mapping[str, str] = {
    "EnsureImage": "create",
    "StartSandbox": "create",
    "StartContainer": "create",
    "KeepSpec": "update",
    "StopSandbox": "kill",
    "StopContainer": "kill",
    "Cleanup": "kill",
}
_MILLISECONDS = 1000


class PodMetrics:
    """Metrics of pods. Its methods are called on the hosts' threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._start = Histogram(
            "kubelet_pod_start_duration_seconds",
            "Time from when a pod was first seen until all its containers had started",
            buckets=_START_BUCKETS,
            registry=registry,
        )
        self._work = Histogram(
            "kubelet_pod_worker_duration_seconds",
            "Duration of one operation on a pod, by type",
            ["operation_type"],
            registry=registry,
        )
        self._lock = threading.Lock()
        self._starting: dict[str, tuple[int, set[str]]] = {}

    def count(self, event: Event) -> None:
        """Track a pod from its acceptance until each of its app containers has started once, and record how long that
        took; drop it if it ends before.
        """
        match event:
            case pod.SpecAccepted(uid=uid, accepted_at=at, manifest=manifest):
                with self._lock:
                    self._starting.setdefault(uid, (at, {one.name for one in manifest.spec.containers}))
            case pod.ContainerStarted(uid=uid, container=name, started_at=at):
                self._started(uid, name, at)
            case pod.PodEnded(uid=uid) | pod.PodFailed(uid=uid) | pod.TerminationRequested(uid=uid):
                with self._lock:
                    self._starting.pop(uid, None)
            case _:
                pass

    def worked(self, effect: str, seconds: float) -> None:
        """Record the duration of a finished pod effect."""
        self._work.labels(_OPERATIONS.get(effect, "sync")).observe(seconds)

    def _started(self, uid: str, container: str, at: int) -> None:
        with self._lock:
            accepted_at, missing = self._starting.get(uid, (0, set[str]()))
            if container not in missing:
                return
            missing.discard(container)
            if missing:
                return
            del self._starting[uid]
        self._start.observe(max(0, at - accepted_at) / _MILLISECONDS)
