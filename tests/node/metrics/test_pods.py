"""Start durations of pods, measured from their events."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from chronolet.node.metrics.pods import PodMetrics
from chronolet.node.metrics.worker_starts import WorkerStarts
from chronolet_schemas import pod
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec

ABOUT: dict[str, Any] = {"pod": "default/web", "uid": "u"}
NAME = "kubelet_pod_start_duration_seconds"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def figures(registry: CollectorRegistry) -> PodMetrics:
    return PodMetrics(registry)


def accepted(at: int = 1_000) -> pod.SpecAccepted:
    containers = tuple(Container(name=name, image="i") for name in ("app", "side"))
    manifest = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(containers=containers))
    return pod.SpecAccepted(
        **ABOUT, source="file", digest="d", manifest=manifest, accepted_at=at, sandbox_hash="s", container_hashes={}
    )


def started(name: str, at: int, attempt: int = 0) -> pod.ContainerStarted:
    return pod.ContainerStarted(**ABOUT, container=name, attempt=attempt, id="c", started_at=at)


def seen(registry: CollectorRegistry) -> tuple[float | None, float | None]:
    return registry.get_sample_value(f"{NAME}_count"), registry.get_sample_value(f"{NAME}_sum")


def test_a_start_is_counted_once_when_the_last_container_has_started(
    registry: CollectorRegistry, figures: PodMetrics
) -> None:
    for event in (accepted(), accepted(9_000), started("init", 1_500), started("app", 2_000), started("app", 2_500, 1)):
        figures.count(event)
    assert seen(registry) == (0, 0)
    figures.count(started("side", 4_000))
    figures.count(started("side", 5_000, 1))
    assert seen(registry) == (1, 3)


def test_a_clock_set_back_counts_as_zero(registry: CollectorRegistry, figures: PodMetrics) -> None:
    for event in (accepted(), started("app", 1), started("side", 2)):
        figures.count(event)
    assert seen(registry) == (1, 0)


@pytest.mark.parametrize(
    "end",
    [
        pod.PodEnded(**ABOUT),
        pod.PodFailed(**ABOUT, reason="r", message="m"),
        pod.TerminationRequested(**ABOUT, reason="Deleted", grace_period_seconds=1, deadline=2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_pod_that_ends_before_it_runs_has_not_started(
    registry: CollectorRegistry, figures: PodMetrics, end: Any
) -> None:
    for event in (accepted(), started("app", 2_000), end, started("side", 3_000)):
        figures.count(event)
    assert seen(registry) == (0, 0)
    assert figures._starting == {}


def test_work_on_pods_is_counted_by_its_purpose(registry: CollectorRegistry, figures: PodMetrics) -> None:
    for effect in ("StartContainer", "StopContainer", "KeepSpec", "RunHook"):
        figures.worked(effect, 2)
    sums = {
        one: registry.get_sample_value("kubelet_pod_worker_duration_seconds_sum", {"operation_type": one})
        for one in ("create", "kill", "update", "sync")
    }
    assert sums == {"create": 2, "kill": 2, "update": 2, "sync": 2}


def test_the_time_to_the_first_work_on_a_pod(registry: CollectorRegistry) -> None:
    starts = WorkerStarts(registry)
    name = "kubelet_pod_worker_start_duration_seconds"
    starts.worked("default/web")
    assert registry.get_sample_value(f"{name}_count") == 0, "its acceptance is unknown"
    starts.count(accepted(at=1_000))
    starts.worked("default/web")
    starts.worked("default/web")
    assert registry.get_sample_value(f"{name}_count") == 1
    assert (registry.get_sample_value(f"{name}_sum") or 0) > 0
    starts.count(accepted())
    starts.count(pod.PodEnded(**ABOUT))
    starts.worked("default/web")
    assert registry.get_sample_value(f"{name}_count") == 1, "the pod ended before any work on it"
