"""The page /metrics/probes: it has the kubelet's names and labels, and no series of removed probes."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from chronolet.node.metrics.metrics import Metrics
from chronolet.prober.wanted import RunProbe
from chronolet_schemas import pleg, prober
from chronolet_schemas.keys import Shard
from chronolet_schemas.podspec import Probe

WHO: dict[str, Any] = {"pod": "default/web", "uid": "u", "container": "app", "probe": "Liveness"}
PROBE = RunProbe(
    subject="worker",
    intent="c/1",
    attempt=0,
    id="c",
    definition=Probe(),
    period_milliseconds=1000,
    ip="",
    from_at=0,
    anchored=False,
    **WHO,
)
NAMES = {"probe_type": "Liveness", "container": "app", "pod": "web", "namespace": "default"}


def samples(page: bytes, prefix: str) -> list[tuple[str, dict[str, str], float]]:
    families = text_string_to_metric_families(page.decode())
    return [
        (one.name, one.labels, one.value)
        for family in families
        for one in family.samples
        if one.name.startswith(prefix) and not one.name.endswith("_bucket")
    ]


def test_outcomes_are_counted_and_durations_of_successes_recorded() -> None:
    metrics = Metrics("n")
    metrics.probes.begins(PROBE)
    for result in ("success", "warning", "failure", "error", "failure"):
        metrics.probes.probed(PROBE, result, 0.5)
    page = metrics.probes.page({}).body
    totals = {labels["result"]: (labels, value) for _, labels, value in samples(page, "prober_probe_total")}
    assert {word: value for word, (_, value) in totals.items()} == {"successful": 2, "failed": 2, "unknown": 1}
    assert totals["failed"][0] == NAMES | {"pod_uid": "u", "result": "failed"}
    durations = {name: (labels, value) for name, labels, value in samples(page, "prober_probe_duration_seconds")}
    assert durations["prober_probe_duration_seconds_count"] == (NAMES, 2)
    assert durations["prober_probe_duration_seconds_sum"] == (NAMES, 1.0)


def test_the_page_equals_the_output_of_prometheus_client() -> None:
    """Our own renderer is faster than the library; its samples are the same, bucket by bucket."""
    metrics, registry = Metrics("n"), CollectorRegistry()
    total = Counter("prober_probe_total", "x", ["result", "pod_uid", *NAMES], registry=registry)
    duration = Histogram("prober_probe_duration_seconds", "x", list(NAMES), registry=registry)
    other = replace(PROBE, pod="default/other", uid="v", probe="Readiness")
    metrics.probes.begins(PROBE)
    metrics.probes.begins(other)
    metrics.probes.probed(other, "failure", 0.1)
    total.labels("failed", "v", "Readiness", "app", "other", "default").inc()
    for seconds in (0.0, 0.005, 0.0051, 0.3, 10.0, 11.5):
        metrics.probes.probed(PROBE, "success", seconds)
        total.labels("successful", "u", *NAMES.values()).inc()
        duration.labels(*NAMES.values()).observe(seconds)
    found, expected = (
        {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}
        for families in (
            text_string_to_metric_families(metrics.probes.page({}).body.decode()),
            text_string_to_metric_families(generate_latest(registry).decode()),
        )
    )
    assert found == expected
    assert len(found) == 2 + 15 + 2


def shown(metrics: Metrics) -> list[float]:
    """Return the values of the outcome counters and duration histograms on the page, without the buckets."""
    return [value for _, _, value in samples(metrics.probes.page({}).body, "prober_")]


def test_removed_probes_are_not_shown() -> None:
    metrics = Metrics("n")
    metrics.probes.begins(PROBE)
    metrics.probes.probed(PROBE, "success", 0.5)
    assert shown(metrics)
    gone = prober.ProbeRemoved(**WHO)
    metrics.step_done(Shard("prober", 1), (gone, gone), 0.001)
    assert shown(metrics) == []
    metrics.probes.probed(PROBE, "failure", 0.5)
    assert shown(metrics) == [], "a probe was in progress when its worker ended"
    metrics.probes.begins(PROBE)
    metrics.probes.probed(PROBE, "failure", 0.5)
    assert [value for *_, value in samples(metrics.probes.page({}).body, "prober_probe_total")] == [1]


def test_probes_of_another_process_are_not_shown() -> None:
    """After a takeover, only the new owner learns when probes are removed; the former owner never does."""
    metrics, other = Metrics("n"), replace(PROBE, pod="default/other", uid="v")
    for probe in (PROBE, other):
        metrics.probes.begins(probe)
        metrics.probes.probed(probe, "success", 0.5)
    metrics.shard_lost(Shard("pod", 1), ("default/web",))
    metrics.shard_lost(Shard("prober", 1), ("default/web/app/Liveness", "default/web/app/Readiness"))
    totals = samples(metrics.probes.page({}).body, "prober_probe_total")
    assert [labels["pod"] for _, labels, _ in totals] == ["other"]
    metrics.probes.probed(PROBE, "failure", 0.5)
    assert samples(metrics.probes.page({}).body, "prober_probe_total") == totals


def test_the_lateness_of_probes_is_measured() -> None:
    metrics = Metrics("n")
    metrics.probes.began(PROBE, 0.01)
    metrics.probes.began(PROBE, 1.0)
    metrics.probes.lost(3)
    page = metrics.page({}).body
    assert [value for *_, value in samples(page, "chronolet_probe_results_lost_total")] == [3]
    assert [value for *_, value in samples(page, "chronolet_probes_spaced_total")] == [1]
    assert {name: value for name, _, value in samples(page, "chronolet_probe_lateness")}[
        "chronolet_probe_lateness_seconds_count"
    ] == 2


def test_unjudged_probes_and_held_kills_are_counted() -> None:
    metrics = Metrics("n")
    metrics.probes.begins(PROBE)
    metrics.probes.probed(PROBE, "unjudged", 1.0)
    (found,) = samples(metrics.probes.page({}).body, "prober_probe_total")
    assert (found[1]["result"], found[2]) == ("unjudged", 1)
    run: dict[str, Any] = {"id": "c", "started_at": 1, "at": 2, **WHO}
    events = (pleg.ProbeKillHeld(**run), pleg.ProbeKillHeld(**run), pleg.ProbeKillDropped(**run))
    metrics.step_done(Shard("pleg", 0), (*events, pleg.ProbeKillReleased(**run)), 0.1)
    kills = samples(metrics.page({}).body, "chronolet_probe_kills_total")
    assert {labels["outcome"]: value for _, labels, value in kills} == {"held": 2, "dropped": 1, "released": 1}
