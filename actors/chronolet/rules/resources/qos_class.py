"""A pod's QoS class, and the oom_score_adj that follows from it for each container. Pure.

Input: a PodSpec. Output: the class; a container's `oom_score_adj`. Next: `pod` (status, containers), `qos`.
Source: pkg/apis/core/v1/helper/qos/qos.go, pkg/kubelet/qos/policy.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from chronolet.rules.resources import resources
from chronolet_schemas.podspec import Container, PodSpec, ResourceRequirements
from chronolet_schemas.resources import QosClass

_COUNT = ("cpu", "memory")
"""The resources that determine the class."""

NODE_CRITICAL: Final = "system-node-critical"
SANDBOX_OOM_SCORE_ADJ: Final = -998
"""The oom_score_adj of the sandbox, which uses hardly any memory and whose death would end the whole pod."""
_NEVER_ADJ = -1000
_GUARANTEED_ADJ, _BEST_EFFORT_ADJ = -997, 1000
_LEAST_BURSTABLE_ADJ, _MOST_BURSTABLE_ADJ = 1000 + _GUARANTEED_ADJ, _BEST_EFFORT_ADJ - 1


def qos_class(spec: PodSpec) -> QosClass:
    """Return the pod's class: from pod-level resources if they are set, else from all app and init containers."""
    whole = spec.resources
    if whole is not None and (whole.requests or whole.limits):
        return _class([whole])
    return _class([one.resources for one in (*spec.containers, *spec.init_containers)])


def _class(several: Iterable[ResourceRequirements]) -> QosClass:
    requested: dict[str, int] = {}
    allowed: dict[str, int] = {}
    all_limited = True
    for one in several:
        limited = _counted(one.limits)
        _add(requested, _counted(one.requests))
        _add(allowed, limited)
        all_limited = all_limited and len(limited) == len(_COUNT)
    if not requested and not allowed:
        return "BestEffort"
    return "Guaranteed" if all_limited and requested == allowed else "Burstable"


def _counted(written: Mapping[str, str]) -> Mapping[str, int]:
    return {name: much for name, much in resources.amounts(written).items() if name in _COUNT and much > 0}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, much in more.items():
        total[name] = total.get(name, 0) + much


def oom_score_adj(spec: PodSpec, container: Container, node_memory_bytes: int) -> int:
    """Return the container's oom_score_adj, from -1000 (never killed when memory is short) to 1000 (killed first)."""
    if spec.priority_class_name == NODE_CRITICAL:
        return _GUARANTEED_ADJ
    found = qos_class(spec)
    if found != "Burstable":
        return _GUARANTEED_ADJ if found == "Guaranteed" else _BEST_EFFORT_ADJ
    own = _burstable(resources.requests(container).get("memory", 0), node_memory_bytes)
    is_sidecar = container.restart_policy == "Always" and container in spec.init_containers
    return min(own, _highest_of_apps(spec, node_memory_bytes)) if is_sidecar else own


def least_oom_score_adj(missing_capabilities: Collection[str]) -> int:
    """Return the lowest oom_score_adj that can be set: without CAP_SYS_RESOURCE, the kernel allows none below 0."""
    return 0 if "SYS_RESOURCE" in missing_capabilities else _NEVER_ADJ


def _highest_of_apps(spec: PodSpec, node_memory_bytes: int) -> int:
    """Return the highest value among the app containers: a sidecar must not be killed before the containers that it
    serves.
    """
    least = min((resources.requests(one).get("memory", 0) for one in spec.containers), default=0)
    return _burstable(least, node_memory_bytes)


def _burstable(request_bytes: int, node_memory_bytes: int) -> int:
    share = 1000 * request_bytes // max(node_memory_bytes, 1)
    return max(_LEAST_BURSTABLE_ADJ, min(_BEST_EFFORT_ADJ - share, _MOST_BURSTABLE_ADJ))
