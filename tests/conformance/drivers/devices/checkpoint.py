"""Runs the restart cases of devices.json. The state is written to a snapshot and read back, where the kubelet
uses its checkpoint file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from chronolet.adapters.device_plugins.wire import answer_message
from chronolet.devices import capacity
from chronolet.devices.checkpoint import exported
from chronolet.devices.state import State
from chronolet_schemas import devices
from tests.conformance.drivers.devices.node import RESOURCE, Node
from tests.conformance.outcome import Case, differences


def _checkpoint(case: Case) -> Iterable[str]:
    """Compare what is known after a restart: allocations, as in the kubelet's checkpoint file, and resources. With
    `new_request` in the case, compare the result of a request after the restart instead.
    """
    given = case["given"]
    node = Node()
    for name, ids in given.get("registered_healthy", {RESOURCE: ["d1"]}).items():
        node.list_devices(name, [devices.DeviceInfo(id=one, health="Healthy") for one in ids])
    for one in given.get("allocations", [{"pod": "p1", "container": "c", "resource": RESOURCE, "devices": ["d1"]}]):
        node.record(one["pod"], one["container"], one["resource"], one["devices"])
    before, known = _entries(node.state), sorted(capacity.capacity(node.state))
    node.restart()
    if "new_request" in given:
        events = node.request("p9", "c", given["new_request"])
        refused = [one for one in events if isinstance(one, devices.DevicesRefused)]
        return differences(case["expect"], {"ok": not refused, "error": refused[0].reason if refused else ""})
    after = _entries(node.state)
    found = {
        "after_restart_allocations_equal": bool(before) and after == before,
        "allocated": {name: list(ids) for name, ids in capacity.allocated(node.state).items()},
        "healthy_after_restart": {name: list(ids) for name, ids in capacity.allocatable(node.state).items()},
        "still_known_plugin_resources": sorted(one for one in known if node.state.known(one)),
        "extended_resource_capacity_reset": after != before or sorted(capacity.capacity(node.state)) != known,
    }
    return differences(case["expect"], found)


def _entries(state: State) -> list[Any]:
    """Return the entries of the file that `chronolet checkpoint` prints."""
    text = exported(state, lambda answer: answer_message(answer).SerializeToString(deterministic=True))
    entries: list[Any] = json.loads(text)["Data"]["PodDeviceEntries"] or []
    return entries


KINDS = {
    "checkpoint": _checkpoint,
}
