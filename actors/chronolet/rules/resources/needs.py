"""The resources that a pod needs from its node. Pure.

Input: a PodSpec. Output: `PodNeeds`. Next: `pod` requests them, `qos` accounts for them. Source:
pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod).
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet.rules.names.host_ports import host_ports
from chronolet.rules.resources import resources
from chronolet.rules.resources.qos_class import qos_class
from chronolet_schemas.podspec import Container, PodSpec
from chronolet_schemas.resources import ContainerNeeds, PodNeeds


def needs(spec: PodSpec) -> PodNeeds:
    """Compute a pod's needs. A CPU or memory limit counts only if every container, or the pod as a whole, sets it."""
    requested, allowed = resources.pod_requests(spec), resources.pod_limits(spec)
    return PodNeeds(
        qos_class=qos_class(spec),
        cpu_request_milli=requested.get("cpu", 0),
        memory_request_bytes=requested.get("memory", 0),
        cpu_limit_milli=allowed["cpu"] if _all_limited(spec, "cpu") else None,
        memory_limit_bytes=allowed["memory"] if _all_limited(spec, "memory") else None,
        huge_pages=_huge_pages(allowed),
        containers={
            one.name: own
            for one in (*spec.init_containers, *spec.containers)
            if (own := _of_container(one)) != ContainerNeeds()
        },
        host_ports=tuple(host_ports(spec)),
    )


def _of_container(container: Container) -> ContainerNeeds:
    allowed = resources.limits(container)
    return ContainerNeeds(
        memory_request_bytes=resources.requests(container).get("memory", 0),
        memory_limit_bytes=allowed.get("memory", 0),
        huge_pages=_huge_pages(allowed),
    )


def _huge_pages(allowed: Mapping[str, int]) -> dict[str, int]:
    return {name: much for name, much in sorted(allowed.items()) if name.startswith(resources.HUGE_PAGES)}


def _all_limited(spec: PodSpec, name: str) -> bool:
    if spec.resources is not None and resources.amounts(spec.resources.limits).get(name):
        return True
    containers = (*spec.containers, *spec.init_containers)
    return bool(containers) and all(resources.limits(one).get(name) for one in containers)
