"""Helpers for the tests of devices: device plugins on a real node, pods that use their devices, and queries of which
pod has which device.

Input: a node. Output: running plugins, lists of devices, containers, device ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chronolet_schemas import devices
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, shell
from tests.support.devices.pod_resources_client import PodResourcesClient
from tests.support.devices.sample_plugin import SamplePlugin, sample_plugin


def folder(node: Node, name: str = "device-plugins") -> Path:
    return node.root / "kubelet" / name


@contextmanager
def plugin(node: Node, resource: str, *options: str) -> Iterator[SamplePlugin]:
    """Run a plugin for `resource`; the block begins once its devices are listed."""
    before = len(node.journal.events(devices.DevicesListed, resource=resource))
    with sample_plugin("--resource", resource, *options, folder=folder(node)) as found:
        try:
            wait_for_list(node, resource, before + 1)
        except TimeoutError as error:
            error.add_note(f"the plugin: {found.lines}")
            raise
        yield found


def wait_for_list(node: Node, resource: str, times: int = 1) -> devices.DevicesListed:
    """Wait until there are `times` lists of a resource; return the latest one."""
    found: list[devices.DevicesListed] = node.journal.wait_for(
        f"{times} lists of {resource}",
        lambda: (lists := node.journal.events(devices.DevicesListed, resource=resource))[times - 1 :] and lists,
    )
    return found[-1]


def pod_resources(node: Node, client: PodResourcesClient, method: str) -> dict[str, Any]:
    """Return a response of PodResources. Retries, because an agent that has just started may not answer yet."""

    def ask() -> Any:
        answer = client.ask(folder(node, "pod-resources"), method)
        return None if "error" in answer else [answer]

    (found,) = node.journal.wait_for("PodResources", ask)
    response: dict[str, Any] = found
    return response


def allocatable(node: Node, client: PodResourcesClient, resource: str) -> list[str]:
    """Return the allocatable devices of a resource, as listed by PodResources."""
    response = pod_resources(node, client, "GetAllocatableResources")
    return [one["device_ids"][0] for one in response.get("devices", ()) if one["resource_name"] == resource]


STAYS = "trap 'exit 0' TERM; echo ready; sleep 3600 & wait"


def requesting(resource: str, count: int, script: str = STAYS, name: str = "app", **more: Any) -> dict[str, Any]:
    return shell(name, script, resources={"limits": {resource: str(count)}}, **more)


def granted_devices(node: Node, resource: str) -> dict[str, tuple[str, ...]]:
    """Return the devices of a resource that existing pods were granted, according to the log: pod -> ids."""
    granted = node.journal.events(pods.DevicesGranted)
    living = {state.uid for state in node.journal.pods.values()}
    return {one.pod: one.devices[resource] for one in granted if one.uid in living and resource in one.devices}
