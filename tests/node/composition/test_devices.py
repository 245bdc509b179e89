"""Devices as listed by PodResources and counted in the metrics."""

from __future__ import annotations

from typing import Any

import immutables
import pytest

from chronolet.devices.state import Claim, Device, Resource, State
from chronolet.history.state import Moment
from chronolet.node.composition.devices import node_resources
from chronolet.node.metrics.metrics import Metrics
from chronolet.pod.state import Container, ContainerPhase, Exit, Failure
from chronolet.pod.state import State as PodState
from chronolet.ports.devices.pod_resources import ContainerResources, NodeResources, PodResources, ResourceDevice
from chronolet_schemas.devices import (
    HEALTHY,
    UNHEALTHY,
    Allocation,
    PluginRegistered,
    RegistrationRefused,
)
from chronolet_schemas.envelope import START
from chronolet_schemas.podspec import Container as Definition
from chronolet_schemas.podspec import Pod, PodSpec

GPU = "a.test/gpu"


def a_pod(*, uid: str = "u", phase: ContainerPhase = "running", **more: Any) -> PodState:
    """Return a pod with one container of each kind, all of them in the phase `phase`."""
    spec = PodSpec(
        init_containers=(Definition(name="init"), Definition(name="sidecar", restart_policy="Always")),
        containers=(Definition(name="app"),),
        restart_policy="Never",
    )
    over = Exit(attempt=0, id="c", exit_code=0, reason="Completed") if phase == "dead" else None
    kinds: tuple[tuple[str, Any], ...] = (("init", "init"), ("sidecar", "sidecar"), ("app", "app"))
    containers = tuple(Container(name=name, kind=kind, phase=phase, exit=over) for name, kind in kinds)
    return PodState(uid=uid, manifest=Pod(spec=spec), containers=containers, **more)


def moment(pods: dict[str, PodState], *claims: Claim) -> Moment:
    devices = {"g0": Device(health=HEALTHY, nodes=(1,)), "g1": Device(health=UNHEALTHY), "g2": Device(health=HEALTHY)}
    state = State(
        resources=immutables.Map({GPU: Resource(phase="listed", devices=immutables.Map(devices))}),
        claims=immutables.Map({claim.id: claim for claim in claims}),
    )
    return Moment(START, {"pod": pods, "devices": {"node": state}})


def held(container: str, *ids: str, resource: str = GPU) -> Claim:
    return Claim(
        pod="default/web",
        uid="u",
        container=container,
        role="app",
        wants={resource: len(ids)},
        phase="granted",
        held={resource: Allocation(devices=ids)},
    )


def test_pods_are_listed_with_the_devices_of_their_containers() -> None:
    pods = {
        "default/web": a_pod(),
        "shop/idle": PodState(pod="shop/idle", uid="i"),
        "default/next": PodState(pod="default/next"),
    }
    found = node_resources(moment(pods, held("init", "g1"), held("app", "g1", "g0"), held("old", "x", resource="b/c")))
    assert found == NodeResources(
        pods=(
            PodResources(
                name="web",
                namespace="default",
                containers=(
                    ContainerResources(name="sidecar"),
                    ContainerResources(
                        name="app",
                        devices=(
                            ResourceDevice(resource=GPU, id="g0", nodes=(1,)),
                            ResourceDevice(resource=GPU, id="g1"),
                        ),
                    ),
                ),
            ),
            PodResources(name="idle", namespace="shop"),
        ),
        allocatable=(ResourceDevice(resource=GPU, id="g0", nodes=(1,)), ResourceDevice(resource=GPU, id="g2")),
    )


def test_allocated_devices_of_a_removed_resource_are_still_listed() -> None:
    pods = {"default/web": a_pod()}
    found = node_resources(moment(pods, held("app", "x1", resource="gone.test/x")))
    assert found.pods[0].containers[1].devices == (ResourceDevice(resource="gone.test/x", id="x1"),)


def test_devices_of_an_adopted_container_are_listed() -> None:
    pods = {"default/web": a_pod()}
    adopted = Claim(pod="default/web", uid="u", container="app", role="app", wants={GPU: 1}, adopted={GPU: ("g0",)})
    found = node_resources(moment(pods, adopted))
    assert found.pods[0].containers[1].devices == (ResourceDevice(resource=GPU, id="g0", nodes=(1,)),)


def test_a_pod_is_active_while_a_container_runs_or_may_run() -> None:
    failed = Failure(reason="UnexpectedAdmissionError", message="no")
    pods = {
        "a/waits": a_pod(phase="waiting"),
        "b/runs": a_pod(),
        "c/fails": a_pod(failure=failed),
        "d/failed": a_pod(phase="dead", failure=failed),
        "e/done": a_pod(phase="dead"),
    }
    found = {one.name: one.active for one in node_resources(moment(pods)).pods}
    assert found == {"waits": True, "runs": True, "fails": True, "failed": False, "done": False}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("n")


def test_registrations_and_allocations_are_counted(metrics: Metrics) -> None:
    for event in (
        PluginRegistered(resource=GPU, generation=1, socket="/x", registered_at=1),
        RegistrationRefused(
            resource=GPU,
            endpoint="x",
            version="v0",
            reason="unsupported_version",
            message="requested API version",
            refused_at=1,
            times=9,
            calls=5,
        ),
    ):
        metrics.devices.count(event)
    metrics.devices.allocate_took(GPU, 1.5)
    text = metrics.page({}).body.decode()
    assert f'kubelet_device_plugin_registration_total{{resource_name="{GPU}"}} 6.0' in text
    assert f'kubelet_device_plugin_alloc_duration_seconds_count{{resource_name="{GPU}"}} 1.0' in text
    assert f'kubelet_device_plugin_alloc_duration_seconds_sum{{resource_name="{GPU}"}} 1.5' in text


def test_calls_to_pod_resources_are_counted(metrics: Metrics) -> None:
    metrics.devices.count_request("v1", "list", failed=False)
    metrics.devices.count_request("v1", "get", failed=True)
    metrics.devices.count_request("v1alpha1", "list", failed=False)
    text = metrics.page({}).body.decode()
    name = "kubelet_pod_resources_endpoint_"
    for line in ("requests_total", "requests_list", "requests_get", "errors_get"):
        count = 2.0 if line == "requests_total" else 1.0
        assert f'{name}{line}{{server_api_version="v1"}} {count}' in text
    assert f"{name}errors_list{{" not in text
    assert f'{name}requests_list{{server_api_version="v1alpha1"}} 1.0' in text
