"""Limits of a container that Docker does not set: memory protection, memory throttling, huge pages."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import pytest

from chronolet.rules.resources.cgroups import Values
from chronolet.rules.resources.container_limits import Holding, additional, cpu_milli
from chronolet.rules.resources.needs import needs
from chronolet_schemas.podspec import Container, PodSpec, ResourceRequirements

MIB = 1 << 20
HELD = Holding(reservation="TieredReservation", throttling=Fraction("0.9"), unlimited_bytes=1000 * MIB)


def container(name: str = "a", limits: dict[str, str] | None = None, **requests: str) -> Container:
    return Container(name=name, resources=ResourceRequirements(requests=requests, limits=limits or {}))


def held(one: Container, holding: Holding = HELD, *others: Container) -> Values:
    return additional(needs(PodSpec(containers=(one, *others))), one.name, holding)


BURSTABLE = container(limits={"memory": "128Mi"}, memory="64Mi")
GUARANTEED = container(limits={"cpu": "1", "memory": "64Mi"}, cpu="1", memory="64Mi")


def test_nothing_by_default() -> None:
    for one in (BURSTABLE, GUARANTEED, container()):
        assert held(one, Holding()) == Values()


def test_requested_memory_is_protected_by_qos_class() -> None:
    holding = Holding(reservation="TieredReservation")
    assert held(GUARANTEED, holding) == Values(memory_min_bytes=64 * MIB)
    assert held(BURSTABLE, holding) == Values(memory_low_bytes=64 * MIB)
    assert held(container(cpu="1"), holding) == Values()


@pytest.mark.parametrize(
    ("one", "high"),
    [
        # 64 MiB + 0.9 * 64 MiB is not a whole number of pages.
        (BURSTABLE, 31129 * 4096),
        (GUARANTEED, None),
        (container(memory="100Mi"), 910 * MIB),
        (container(), 900 * MIB),
        (container(limits={"memory": "10Mi"}), 9 * MIB),
        # With a threshold at or below the request, the container would always be throttled.
        (container(memory="2000Mi"), None),
        (container(limits={"memory": "64Mi"}, memory="67108863"), None),
    ],
)
def test_the_throttling_limit_lies_between_request_and_limit(one: Container, high: int | None) -> None:
    assert held(one, Holding(throttling=Fraction("0.9"), unlimited_bytes=1000 * MIB)).memory_high_bytes == high


def test_without_a_known_amount_of_memory_nothing_is_throttled() -> None:
    assert held(container(), Holding(throttling=Fraction(1))).memory_high_bytes is None


def test_huge_pages_are_limited_if_the_pod_has_some() -> None:
    one, other = container(limits={"hugepages-2Mi": "4Mi"}), container("b", limits={"hugepages-1Gi": "1Gi"})
    assert held(one, Holding(), other).huge_pages == ((1 << 30, 0), (2 * MIB, 4 * MIB))
    assert held(other, Holding(), one).huge_pages == ((1 << 30, 1 << 30), (2 * MIB, 0))


@pytest.mark.parametrize(("cpu", "milli"), [(True, 1500), (False, 0)])
def test_cpu_time_is_limited_unless_the_node_enforces_no_limits(cpu: bool, milli: Literal[0, 1500]) -> None:
    assert cpu_milli(container(limits={"cpu": "1500m"}), Holding(cpu=cpu)) == milli
    assert cpu_milli(container(), Holding()) == 0
