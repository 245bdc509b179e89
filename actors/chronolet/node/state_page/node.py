"""The metrics of the node on the page /metrics/state. Pure.

Input: a v1 Node as plain data. Output: text. Next: `page`. Source: kube-state-metrics' internal/store/node.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chronolet.node.state_page.text import Family, Sample, label, rendered, resource
from chronolet.rules.resources import quantities

Object = dict[str, Any]

_MILLI = 1000
_STATUSES = ("true", "false", "unknown")


def _info(node: Object) -> Iterable[Sample]:
    info, addresses = node["status"]["nodeInfo"], node["status"]["addresses"]
    labels = {
        "kernel_version": info["kernelVersion"],
        "os_image": info["osImage"],
        "container_runtime_version": info["containerRuntimeVersion"],
        "kubelet_version": info["kubeletVersion"],
        "kubeproxy_version": "",
        "provider_id": "",
        "pod_cidr": "",
        "system_uuid": info["systemUUID"],
        "internal_ip": next((one["address"] for one in addresses if one["type"] == "InternalIP"), ""),
    }
    return ((f",{rendered(labels)}", 1),)


def _conditions(node: Object) -> Iterator[Sample]:
    for one in node["status"]["conditions"]:
        now = one["status"].lower()
        for status in _STATUSES:
            yield label("condition", one["type"]) + label("status", status), int(status == now)


def _addresses(node: Object) -> Iterator[Sample]:
    for one in node["status"]["addresses"]:
        yield label("type", one["type"]) + label("address", one["address"]), 1


def _amounts(node: Object, field: str) -> Iterator[Sample]:
    for name, amount in node["status"][field].items():
        value = quantities.cpu_milli(amount) / _MILLI if name == "cpu" else quantities.whole(amount)
        yield resource(name), value


_FAMILIES: tuple[Family[Object], ...] = (
    Family("kube_node_info", "gauge", "System and runtime of the node", _info),
    Family("kube_node_spec_unschedulable", "gauge", "Always 0: the node has no scheduler", lambda _: (("", 0),)),
    Family("kube_node_status_condition", "gauge", "Conditions: 1 for the current status", _conditions),
    Family("kube_node_status_addresses", "gauge", "Addresses of the node", _addresses),
    Family("kube_node_status_capacity", "gauge", "Amount of a resource", lambda one: _amounts(one, "capacity")),
    Family(
        "kube_node_status_allocatable",
        "gauge",
        "Amount of a resource that pods may request",
        lambda one: _amounts(one, "allocatable"),
    ),
)


def written(node: Object) -> str:
    """Render the metrics of the node."""
    labels = rendered({"node": node["metadata"]["name"]})
    return "".join(family.head() + text for family in _FAMILIES if (text := family.lines(labels, node)))
