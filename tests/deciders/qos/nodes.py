"""Nodes and needs for the tests of qos."""

from __future__ import annotations

from typing import Any

from chronolet.qos import signals
from chronolet_schemas import pod
from chronolet_schemas.qos import Amounts, Node
from chronolet_schemas.resources import PodNeeds, QosClass

GIB = 1 << 30


def node(**other: Any) -> Node:
    """Return a node with three processors and 8 GiB, by default all of it for pods."""
    much = Amounts(cpu_milli=3000, memory_bytes=8 * GIB)
    fields: dict[str, Any] = {
        "capacity": much,
        "enforced": much,
        "allocatable": much,
        "max_pods": 110,
        "version": 1,
        "driver": "cgroupfs",
        "root": ("kubepods",),
    }
    return Node(**(fields | other))


def seen(**other: Any) -> signals.NodeSeen:
    return signals.NodeSeen(node=node(**other))


def need(qos_class: QosClass = "Burstable", cpu: int = 500, memory: int = GIB, **other: Any) -> PodNeeds:
    """Return the needs of a pod. A best-effort pod needs nothing; the limits of a guaranteed pod are its requests."""
    if qos_class == "BestEffort":
        return PodNeeds(qos_class=qos_class, **other)
    if qos_class == "Guaranteed":
        other = {"cpu_limit_milli": cpu, "memory_limit_bytes": memory} | other
    return PodNeeds(qos_class=qos_class, cpu_request_milli=cpu, memory_request_bytes=memory, **other)


def requested(uid: str, needs: PodNeeds, *, running: bool = False) -> pod.CgroupRequested:
    return pod.CgroupRequested(pod=f"default/{uid}", uid=uid, needs=needs, running=running)
