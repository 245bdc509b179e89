"""What a pod asks for and may use, summed up over its containers. Pure.

Input: a PodSpec. Output: amounts by resource name: `cpu` in thousandths of a processor, all others in units
(bytes, counts). Next: `qos_class`, admission, cgroups. Answers to
staging/src/k8s.io/component-helpers/resource/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from chronolet.rules.resources import quantities
from chronolet_schemas.podspec import Container, PodSpec, ResourceRequirements

Amounts = Mapping[str, int]

HUGE_PAGES = "hugepages-"
_OF_A_POD = ("cpu", "memory")
"""What may be set for a pod as a whole, huge pages apart."""


def amounts(written: Mapping[str, str]) -> Amounts:
    """Quantities as numbers. Raises QuantityError, which a manifest that was accepted does not lead to."""
    return {
        name: quantities.cpu_milli(text) if name == "cpu" else quantities.whole(text) for name, text in written.items()
    }


def requests(container: Container) -> Amounts:
    """What a container asks for."""
    return amounts(container.resources.requests)


def limits(container: Container) -> Amounts:
    """What a container may use."""
    return amounts(container.resources.limits)


def pod_requests(spec: PodSpec) -> Amounts:
    """What the pod needs at the moment of its greatest need, overhead included."""
    total = _of_the_pod(_greatest(spec, requests), spec.resources, lambda of_pod: of_pod.requests)
    return _plus(total, amounts(spec.overhead))


def pod_limits(spec: PodSpec) -> Amounts:
    """What the pod may use; overhead is added where there is a limit."""
    total = _of_the_pod(_greatest(spec, limits), spec.resources, lambda of_pod: of_pod.limits)
    return _plus(total, {name: much for name, much in amounts(spec.overhead).items() if total.get(name)})


def page_size(resource: str) -> int:
    """Bytes of a huge page, by the resource's name: `hugepages-2Mi`."""
    return quantities.whole(resource.removeprefix(HUGE_PAGES))


def _greatest(spec: PodSpec, side: Callable[[Container], Amounts]) -> Amounts:
    """Init containers run one after the other beside the sidecars before them; then all the others together."""
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
    """What is set for the pod as a whole stands for its containers' sum."""
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
