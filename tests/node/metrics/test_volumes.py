"""Metrics of desired and existing volumes and of the operations on them, named as in the kubelet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from chronolet.adapters.volumes import HostVolumes
from chronolet.node.metrics.measured_volumes import MeasuredVolumes
from chronolet.node.metrics.volumes import VolumeMetrics, plugin
from chronolet.ports.pods.volumes import PodVolumes, VolumeRefusal
from chronolet_schemas import pod
from chronolet_schemas.podspec import Volume
from chronolet_schemas.podspec.volumes import EmptyDir, HostPath
from tests.deciders.pod.life import Life, manifest, running

EMPTY, HOST = "kubernetes.io/empty-dir", "kubernetes.io/host-path"
VOLUMES = (Volume(name="a", empty_dir=EmptyDir()), Volume(name="b", empty_dir=EmptyDir()))


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> VolumeMetrics:
    return VolumeMetrics(registry)


def volumes(registry: CollectorRegistry, name: str = EMPTY) -> tuple[float | None, float | None]:
    """Return the numbers of desired and of existing volumes of the plugin `name`."""
    desired, actual = (
        registry.get_sample_value(
            "volume_manager_total_volumes", {"plugin_name": name, "state": f"{one}_state_of_world"}
        )
        for one in ("desired", "actual")
    )
    return desired, actual


def operations(registry: CollectorRegistry, labels: Mapping[str, str]) -> float | None:
    name = "storage_operation_duration_seconds_count"
    return registry.get_sample_value(name, {"migrated": "false", **labels})


def test_volumes_follow_the_life_of_their_pod(registry: CollectorRegistry, metrics: VolumeMetrics) -> None:
    assert volumes(registry) == (0, 0)
    life = Life().apply(manifest(volumes=VOLUMES))
    for event in life.facts:
        metrics.count(event)
    assert volumes(registry) == (2, 0)
    life.sandbox_up().start()
    for event in life.facts:
        metrics.count(event)
    assert volumes(registry) == (2, 2)
    metrics.count(pod.PodEnded(pod="default/web", uid="u1"))
    assert volumes(registry) == (0, 0)


def test_a_recovered_shard_brings_its_volumes_and_takes_them_along(
    registry: CollectorRegistry, metrics: VolumeMetrics
) -> None:
    up = running(volumes=VOLUMES).state
    waits = replace(Life().apply(manifest(volumes=VOLUMES)).state, pod="default/waits")
    metrics.recovered({"default/web": up, "default/waits": waits})
    assert volumes(registry) == (4, 2)
    metrics.leave(["default/web"])
    assert volumes(registry) == (2, 0)


def test_operations_are_timed_for_each_volume(
    registry: CollectorRegistry, metrics: VolumeMetrics, tmp_path: Path
) -> None:
    measured = MeasuredVolumes(HostVolumes(tmp_path), metrics)
    paths = measured.prepare(PodVolumes(uid="u1", volumes=VOLUMES))
    assert paths == HostVolumes(tmp_path).prepare(PodVolumes(uid="u1", volumes=VOLUMES))
    assert sorted(paths) == ["a", "b"]
    mounted = {"operation_name": "volume_mount", "volume_plugin": EMPTY, "status": "success"}
    assert operations(registry, mounted) == 2
    measured.remove("u1")
    removed = {"operation_name": "volume_unmount", "volume_plugin": "all", "status": "success"}
    assert operations(registry, removed) == 1


def test_a_refused_operation_is_an_error(registry: CollectorRegistry, metrics: VolumeMetrics, tmp_path: Path) -> None:
    missing = Volume(name="c", host_path=HostPath(path=str(tmp_path / "none"), type="Directory"))
    with pytest.raises(VolumeRefusal):
        MeasuredVolumes(HostVolumes(tmp_path), metrics).prepare(PodVolumes(uid="u1", volumes=(missing,)))
    labels = {"operation_name": "volume_mount", "volume_plugin": HOST}
    assert operations(registry, {**labels, "status": "fail-unknown"}) == 1
    assert registry.get_sample_value("storage_operation_errors_total", labels) == 1


def test_a_volume_that_chronolet_does_not_provide_has_no_plugin() -> None:
    assert plugin(Volume(name="d", csi={})) == ""
