"""Runs the cases of devices.json about options, statuses and defaults that follow from allocations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.devices import capacity
from chronolet.devices.actor import NODE
from chronolet.devices.plugins.stops import STOP_GRACE_MILLISECONDS
from chronolet.devices.plugins.validation import SUPPORTED_VERSION
from chronolet.history.state import Moment
from chronolet.node.http.api_pods import api_pods
from chronolet.pod.state import Container
from chronolet.pod.state import State as PodState
from chronolet.rules.device_options import merged
from chronolet_schemas import devices, podspec
from chronolet_schemas.envelope import Position
from tests.conformance.drivers.devices.node import RESOURCE, Node, device_infos
from tests.conformance.outcome import Case, differences


def _sanitize(case: Case) -> Iterable[str]:
    given = case["given"]
    held = {name: tuple(str(one) for one in range(count)) for name, count in given["allocated_counts"].items()}
    found = capacity.at_least(given["node_allocatable"], held)
    return differences(case["expect"], {"node_allocatable": found})


def _run_container_options(case: Case) -> Iterable[str]:
    answers = [
        devices.Answer(
            envs=one["envs"],
            mounts=tuple(devices.Mount(container_path=inside, host_path=host) for inside, host in one["mounts"]),
            devices=tuple(devices.DeviceNode(container_path=inside, host_path=host) for inside, host in one["devices"]),
        )
        for one in case["given"]["answers"].values()
    ]
    found = merged(answers)
    counts = {"env_count": len(found.envs), "mount_count": len(found.mounts), "device_count": len(found.devices)}
    return differences(case["expect"], counts)


def _allocated_resource_status(case: Case) -> Iterable[str]:
    """Compare the health of a container's devices, as shown by the pod's status in /pods."""
    given = case["given"]
    node = Node()
    node.list_devices(RESOURCE, device_infos([{"id": name, "health": word} for name, word in given["health"].items()]))
    node.record("p1", "c", RESOURCE, given["recorded"])
    manifest = podspec.Pod(
        metadata=podspec.ObjectMeta(name="p1"), spec=podspec.PodSpec(containers=(podspec.Container(name="c"),))
    )
    one = PodState(pod="default/p1", uid="p1", manifest=manifest, containers=(Container(name="c", kind="app"),))
    moment = Moment(position=Position(1, 1), states={"pod": {"default/p1": one}, "devices": {NODE: node.state}})
    (shown,) = api_pods(moment, "node")
    (container,) = shown["status"]["containerStatuses"]
    (resource,) = container["allocatedResourcesStatus"]
    status = [{"id": each["resourceID"], "health": each["health"]} for each in resource["resources"]]
    return differences(case["expect"], {"status": status})


def _default_value(case: Case) -> Iterable[str]:
    values: dict[str, Any] = {
        "endpoint_stop_grace_period_seconds": STOP_GRACE_MILLISECONDS // 1000,
        "supported_api_version": SUPPORTED_VERSION,
    }
    option = case["given"]["option"]
    return differences(case["expect"], {"value": values[option]} if option in values else {})


KINDS = {
    "sanitize_node_allocatable": _sanitize,
    "run_container_options": _run_container_options,
    "allocated_resource_status": _allocated_resource_status,
    "default_value": _default_value,
}
