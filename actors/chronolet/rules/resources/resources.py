"""A pod's requests and limits, summed over its containers. Pure.

Input: a PodSpec. Output: amounts by resource name: `cpu` in milli CPUs, all others in units (bytes, counts). Next:
`qos_class`, admission, cgroups. Source:
staging/src/k8s.io/component-helpers/resource/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from chronolet.rules.resources import quantities
from chronolet_schemas.podspec import Container, PodSpec, ResourceRequirements

Amounts = Mapping[str, int]

HUGE_PAGES = "hugepages-"
_OF_A_POD = ("cpu", "memory")
"""The resources that can be set at pod level, in addition to huge pages."""


def amounts(written: Mapping[str, str]) -> Amounts:
    """Parse quantities. Raises QuantityError, but never for an accepted manifest."""
    return {
        name: quantities.cpu_milli(text) if name == "cpu" else quantities.whole(text) for name, text in written.items()
    }


def requests(container: Container) -> Amounts:
    """Return a container's requests."""
    return amounts(container.resources.requests)


def limits(container: Container) -> Amounts:
    """Return a container's limits."""
    return amounts(container.resources.limits)


def pod_requests(spec: PodSpec) -> Amounts:
    """Return the pod's requests at their peak, including overhead."""
    total = _of_the_pod(_greatest(spec, requests), spec.resources, lambda of_pod: of_pod.requests)
    return _plus(total, amounts(spec.overhead))


def pod_limits(spec: PodSpec) -> Amounts:
    """Return the pod's limits at their peak; overhead is added to resources that have a limit."""
    total = _of_the_pod(_greatest(spec, limits), spec.resources, lambda of_pod: of_pod.limits)
    return _plus(total, {name: much for name, much in amounts(spec.overhead).items() if total.get(name)})


def page_size(resource: str) -> int:
    """Return the page size in bytes of a huge page resource such as `hugepages-2Mi`."""
    return quantities.whole(resource.removeprefix(HUGE_PAGES))


def _greatest(spec: PodSpec, side: Callable[[Container], Amounts]) -> Amounts:
    """Return the peak over the pod's life: each init container runs together with the sidecars before it; then all app
    containers and sidecars run together.
    """
    sidecars: Amounts = {}
    most: Amounts = {}
    for one in spec.init_containers:
        here = _plus(sidecars, side(one))
        most = _maximum(most, here)
        if one.restart_policy == "Always":
            sidecars = here
    return _maximum(most, _sum((sidecars, *map(side, spec.containers))))


def _of_the_pod(
    found: Amounts, of_pod: ResourceRequirements | None, side: Callable[[ResourceRequirements], Mapping[str, str]]
) -> Amounts:
    """Replace the sum over the containers with the amounts set at pod level."""
    if of_pod is None:
        return found
    own = amounts(side(of_pod))
    return {**found, **{name: much for name, much in own.items() if name in _OF_A_POD or name.startswith(HUGE_PAGES)}}


def _sum(several: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for one in several:
        total = _plus(total, one)
    return total


def _plus(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *other)}


def _maximum(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *other)}
