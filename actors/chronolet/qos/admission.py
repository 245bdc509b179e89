"""Decides whether the node has room for one more pod. Pure.

Input: the node, the needs of the other pods and of this one. Output: None, or the refusal in the kubelet's wording.
Next: `decider`. Source: pkg/kubelet/lifecycle/predicate.go, pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chronolet_schemas.qos import Node
from chronolet_schemas.resources import PodNeeds


class Refusal(NamedTuple):
    """A refusal, which names the first insufficient resource."""

    reason: str
    message: str


class _Demand(NamedTuple):
    resource: str
    requested: int
    used: int
    capacity: int


def refusal(node: Node, others: Sequence[PodNeeds], needs: PodNeeds) -> Refusal | None:
    """Return why the pod does not fit alongside the others; None if it fits."""
    return next((_as_refusal(one) for one in _demands(node, others, needs) if _is_too_much(one)), None)


def _demands(node: Node, others: Sequence[PodNeeds], needs: PodNeeds) -> Iterator[_Demand]:
    room = node.allocatable
    yield _Demand("pods", 1, len(others), node.max_pods)
    yield _Demand("cpu", needs.cpu_request_milli, sum(one.cpu_request_milli for one in others), room.cpu_milli)
    used = sum(one.memory_request_bytes for one in others)
    yield _Demand("memory", needs.memory_request_bytes, used, room.memory_bytes)
    for name, much in sorted(needs.huge_pages.items()):
        taken = sum(one.huge_pages.get(name, 0) for one in others)
        yield _Demand(name, much, taken, room.huge_pages.get(name, 0))


def _is_too_much(one: _Demand) -> bool:
    # A resource that the pod does not request is never a reason to refuse it, even if overcommitted.
    return one.requested > 0 and one.requested > one.capacity - one.used


def _as_refusal(one: _Demand) -> Refusal:
    return Refusal(
        reason=f"OutOf{one.resource}",
        message=(
            f"Node didn't have enough resource: {one.resource}, requested: {one.requested}, "
            f"used: {one.used}, capacity: {one.capacity}"
        ),
    )
