"""/metrics/probes, and how punctual probes are.

Comes in: what the prober's workers tell, which probes are gone. Goes out: the text of the page; two figures more on
/metrics. Names and labels are the kubelet's (pkg/kubelet/prober/prober_manager.go), whose histogram, too, has successes
only. Next: `http`.
"""

from __future__ import annotations

from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from chronolet.node.http import Answer, Query
from chronolet.ports.probes import Result
from chronolet.prober.wanted import RunProbe
from chronolet_schemas import prober

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LATENESS_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0)
_TOTAL = ("probe_type", "result", "container", "pod", "namespace", "pod_uid")
_DURATION = ("probe_type", "container", "pod", "namespace")
_WORDS: dict[Result, str] = {"success": "successful", "warning": "successful", "failure": "failed", "error": "unknown"}


class _Series(NamedTuple):
    """What one probe moves, looked up once."""

    counters: dict[str, Counter]
    seconds: Histogram


class ProbeFigures:
    """`prober.outside.Figures`. Workers call it on one thread, hosts and scrapes on theirs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """`registry` is that of /metrics; the page has one of its own."""
        self._page = CollectorRegistry()
        self._total = Counter(
            "prober_probe_total",
            "Cumulative number of a liveness, readiness or startup probe for a container by result.",
            _TOTAL,
            registry=self._page,
        )
        self._duration = Histogram(
            "prober_probe_duration_seconds", "Duration in seconds for a probe response.", _DURATION, registry=self._page
        )
        self._lateness = Histogram(
            "chronolet_probe_lateness_seconds",
            "How long after its time a probe began",
            buckets=_LATENESS_BUCKETS,
            registry=registry,
        )
        self._spaced = Counter(
            "chronolet_probes_spaced_total",
            "Probes that began more than a period late, because too many were at work",
            registry=registry,
        )
        self._series: dict[tuple[str, str, str], _Series] = {}

    def began(self, probe: RunProbe, late_seconds: float) -> None:
        """See `Figures`."""
        self._lateness.observe(late_seconds)
        if late_seconds * 1000 >= probe.period_milliseconds:
            self._spaced.inc()

    def probed(self, probe: RunProbe, result: Result, seconds: float) -> None:
        """See `Figures`."""
        key = (probe.uid, probe.container, probe.probe)
        series = self._series.get(key) or self._begin(key, probe)
        word = _WORDS[result]
        counter = series.counters.get(word)
        if counter is None:
            counter = series.counters[word] = self._total.labels(probe.probe, word, *_names(probe), probe.uid)
        counter.inc()
        if word == "successful":
            series.seconds.observe(seconds)

    def forget(self, gone: prober.ProbeRemoved) -> None:
        """The probe is gone, with its pod or its spec's: so are its series."""
        series = self._series.pop((gone.uid, gone.container, gone.probe), None)
        for word in series.counters if series else ():
            self._total.remove(gone.probe, word, *_names(gone), gone.uid)
        if series:
            self._duration.remove(gone.probe, *_names(gone))

    def page(self, query: Query) -> Answer:
        """/metrics/probes."""
        del query
        return Answer(200, generate_latest(self._page), CONTENT_TYPE)

    def _begin(self, key: tuple[str, str, str], probe: RunProbe) -> _Series:
        series = self._series[key] = _Series({}, self._duration.labels(probe.probe, *_names(probe)))
        return series


def _names(probe: RunProbe | prober.ProbeRemoved) -> tuple[str, str, str]:
    namespace, _, name = probe.pod.partition("/")
    return probe.container, name, namespace
