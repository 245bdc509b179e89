"""Device plugins next to a real node, pods that use their devices, and who has which device.

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
from tests.support.pod_resources_client import PodResourcesClient
from tests.support.sample_plugin import SamplePlugin, sample_plugin


def folder(node: Node, name: str = "device-plugins") -> Path:
    return node.root / "kubelet" / name


@contextmanager
def plugin(node: Node, resource: str, *options: str) -> Iterator[SamplePlugin]:
    """A plugin of that resource, once it is listed."""
    before = len(node.journal.events(devices.DevicesListed, resource=resource))
    with sample_plugin("--resource", resource, *options, folder=folder(node)) as found:
        try:
            listed(node, resource, before + 1)
        except TimeoutError as error:
            error.add_note(f"the plugin: {found.said}")
            raise
        yield found


def listed(node: Node, resource: str, times: int = 1) -> devices.DevicesListed:
    """The last list of a resource, when there are so many."""
    found: list[devices.DevicesListed] = node.journal.wait_for(
        f"{times} lists of {resource}",
        lambda: (said := node.journal.events(devices.DevicesListed, resource=resource))[times - 1 :] and said,
    )
    return found[-1]


def pod_resources(node: Node, client: PodResourcesClient, method: str) -> dict[str, Any]:
    """An answer of PodResources. An agent that has just begun, or cannot read its log now, does not answer yet."""

    def asked() -> Any:
        said = client.ask(folder(node, "pod-resources"), method)
        return None if "error" in said else [said]

    (said,) = node.journal.wait_for("PodResources", asked)
    answer: dict[str, Any] = said
    return answer


def allocatable(node: Node, client: PodResourcesClient, resource: str) -> list[str]:
    """What pods may have of a resource, by PodResources."""
    said = pod_resources(node, client, "GetAllocatableResources")
    return [one["device_ids"][0] for one in said.get("devices", ()) if one["resource_name"] == resource]


LIVES = "trap 'exit 0' TERM; echo ready; sleep 3600 & wait"


def wants(resource: str, count: int, script: str = LIVES, name: str = "app", **more: Any) -> dict[str, Any]:
    return shell(name, script, resources={"limits": {resource: str(count)}}, **more)


def ids(node: Node, resource: str) -> dict[str, tuple[str, ...]]:
    """By the log: pod -> the devices of its containers."""
    granted = node.journal.events(pods.DevicesGranted)
    living = {state.uid for state in node.journal.pods.values()}
    return {one.pod: one.devices[resource] for one in granted if one.uid in living and resource in one.devices}
