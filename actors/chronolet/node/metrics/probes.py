"""Probe metrics: the page /metrics/probes, and lateness, losses and held kills on /metrics.

Input: calls from the prober's workers; which probes are gone or belong to another process. Output: the text of the
page, and metrics on /metrics. Names and labels of the page are the kubelet's (pkg/kubelet/prober/prober_manager.go),
whose histogram likewise covers only successes. Next: `node.http.server`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from prometheus_client.metrics import Counter, Histogram
from prometheus_client.registry import CollectorRegistry

from chronolet.node.http.server import Query, Response
from chronolet.node.metrics.probe_page import ProbeSeries, written
from chronolet.prober.actor import key as prober_key
from chronolet.prober.wanted import RunProbe
from chronolet_schemas import pleg
from chronolet_schemas.prober import Outcome

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LATENESS_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0)
_RESULT_LABELS: dict[Outcome, str] = {
    "success": "successful",
    "warning": "successful",
    "failure": "failed",
    "unknown": "failed",
    "error": "unknown",
    "unjudged": "unjudged",
}
"""The kubelet's values of `result`; only `unjudged` is our own."""


class ProbeMetrics:
    """Implements `prober.workers.dependencies.Figures`. Workers call it on one thread, hosts and scrapes on others."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """`registry`: the registry of /metrics; the series of /metrics/probes are not in it."""
        self._lateness = Histogram(
            "chronolet_probe_lateness_seconds",
            "Delay of a probe after its scheduled time",
            buckets=_LATENESS_BUCKETS,
            registry=registry,
        )
        self._spaced = Counter(
            "chronolet_probes_spaced_total",
            "Probes that began more than a period late because too many were running",
            registry=registry,
        )
        self._lost = Counter(
            "chronolet_probe_results_lost_total",
            "Probe outcomes that could not be written to the stream probe_results",
            registry=registry,
        )
        self._kills = Counter(
            "chronolet_probe_kills_total",
            "Kills for failed probes requested while the machine was overloaded, by outcome",
            ["outcome"],
            registry=registry,
        )
        self._lock = threading.Lock()
        self._series: dict[str, ProbeSeries] = {}
        """The series of the probes that this process runs, by key; late results of any other probe are ignored."""

    def begins(self, probe: RunProbe) -> None:
        """See `Figures`."""
        key = prober_key(probe.pod, probe.container, probe.probe)
        with self._lock:
            known = self._series.get(key)
            if known is None or known.uid != probe.uid:
                self._series[key] = ProbeSeries(probe.uid, key)

    def began(self, probe: RunProbe, late_seconds: float) -> None:
        """See `Figures`."""
        self._lateness.observe(late_seconds)
        if late_seconds * 1000 >= probe.period_milliseconds:
            self._spaced.inc()

    def probed(self, probe: RunProbe, result: Outcome, seconds: float) -> None:
        """See `Figures`."""
        label, key = _RESULT_LABELS[result], prober_key(probe.pod, probe.container, probe.probe)
        with self._lock:
            series = self._series.get(key)
            if series is None or series.uid != probe.uid:
                return
            series.count(label)
            if label == "successful":
                series.observe(seconds)

    def lost(self, count: int) -> None:
        """Count raw outcomes that were dropped."""
        self._lost.inc(count)

    def kill(self, event: pleg.ProbeKillEvent) -> None:
        """Count a held, released or dropped kill for a failed probe."""
        match event:
            case pleg.ProbeKillHeld():
                self._kills.labels("held").inc()
            case pleg.ProbeKillDropped():
                self._kills.labels("dropped").inc()
            case _:
                self._kills.labels("released").inc()

    def leave(self, keys: Iterable[str]) -> None:
        """Drop the series of probes that are gone or belong to another process."""
        with self._lock:
            for key in keys:
                self._series.pop(key, None)

    def page(self, query: Query) -> Response:
        """Render the page /metrics/probes, outside the lock, so that probes do not wait for it."""
        del query
        with self._lock:
            found = list(self._series.values())
        return Response(200, written(found), CONTENT_TYPE)
