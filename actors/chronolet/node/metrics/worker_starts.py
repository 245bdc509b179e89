"""Metric of the time from a pod's acceptance to the first work on it, by the kubelet's name.

Input: pod events, the starts of effects. Output: a histogram in a registry. Next: `metrics`. Source:
pkg/kubelet/metrics (PodWorkerStartDuration).
"""

from __future__ import annotations

import threading
import time

from prometheus_client.metrics import Histogram
from prometheus_client.registry import CollectorRegistry

from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

_MILLI = 1000


class WorkerStarts:
    """Measures the pods that this process has accepted. Its methods are called on the hosts' threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "kubelet_pod_worker_start_duration_seconds",
            "Time from a pod's acceptance to the first work on it",
            registry=registry,
        )
        self._lock = threading.Lock()
        self._accepted: dict[str, int] = {}

    def count(self, event: Event) -> None:
        """Keep the time at which a pod was accepted, until the first work on it or its end."""
        match event:
            case pod.SpecAccepted(accepted_at=at):
                with self._lock:
                    self._accepted.setdefault(event.pod, at)
            case pod.PodEnded():
                with self._lock:
                    self._accepted.pop(event.pod, None)
            case _:
                pass

    def worked(self, key: str) -> None:
        """Record that an effect of the pod `key` starts. Only the first effect after the pod's acceptance counts."""
        with self._lock:
            at = self._accepted.pop(key, None)
        if at is not None:
            self._seconds.observe(max(0.0, time.time() - at / _MILLI))
