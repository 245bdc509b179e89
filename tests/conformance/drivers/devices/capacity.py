"""Runs the cases of devices.json about registration and capacity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.devices import capacity
from chronolet.rules.resources.extended_resources import is_extended
from chronolet_schemas import devices
from tests.conformance.drivers.devices.node import Node, device_infos
from tests.conformance.outcome import Case, differences


def _capacity_sequence(case: Case) -> Iterable[str]:
    node = Node()
    reported = 0
    for number, step in enumerate(case["steps"]):
        node.advance_to(step["t_seconds"])
        match step["op"]:
            case "plugin_lists_devices":
                node.list_devices(step["resource"], device_infos(step["devices"]))
            case "plugin_stops":
                node.stop_plugin(step["resource"])
            case "kubelet_restarts":
                node.restart()
            case _:
                removed = [one.resource for one in node.events[reported:] if isinstance(one, devices.ResourceRemoved)]
                reported = len(node.events)
                found = {
                    "capacity": capacity.capacity(node.state),
                    "allocatable": {name: len(ids) for name, ids in capacity.allocatable(node.state).items()},
                    "deleted_resources": removed,
                }
                yield from differences(step["expect"], found, f"step {number}: ")


def _allocatable_devices(case: Case) -> Iterable[str]:
    node = Node()
    for name, listed in case["given"]["devices"].items():
        node.list_devices(name, device_infos(listed))
    found = {name: list(ids) for name, ids in capacity.allocatable(node.state).items()}
    return differences(case["expect"], {"allocatable": found})


def _registration(case: Case) -> Iterable[str]:
    (event, *_) = Node().register(case["given"]["resource_name"], case["given"]["api_version"])
    found: dict[str, Any] = {"accepted": isinstance(event, devices.PluginRegistered)}
    if isinstance(event, devices.RegistrationRefused):
        found["reason"] = event.reason
    return differences(case["expect"], found)


def _extended_resource_name(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"valid": is_extended(case["given"]["name"])})


KINDS = {
    "capacity_sequence": _capacity_sequence,
    "allocatable_devices": _allocatable_devices,
    "registration": _registration,
    "extended_resource_name": _extended_resource_name,
}
