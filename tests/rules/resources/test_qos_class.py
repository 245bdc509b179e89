"""QoS classes, requests, needs, OOM scores and cgroup names: cases that the conformance vectors do not cover."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.rules.resources import cgroups
from chronolet.rules.resources.needs import needs
from chronolet.rules.resources.qos_class import least_oom_score_adj, oom_score_adj, qos_class
from chronolet.rules.resources.resources import page_size, pod_limits, pod_requests
from chronolet_schemas.podspec import Container, PodSpec, ResourceRequirements
from chronolet_schemas.resources import ContainerNeeds, PodNeeds

GIB = 1 << 30


def container(
    name: str = "app", *, sidecar: bool = False, limits: dict[str, str] | None = None, **requests: str
) -> Container:
    resources = ResourceRequirements(requests={**(limits or {}), **requests}, limits=limits or {})
    return Container(name=name, resources=resources, restart_policy="Always" if sidecar else None)


def spec(*apps: Container, init: tuple[Container, ...] = (), **other: object) -> PodSpec:
    return PodSpec(containers=apps, init_containers=init, **other)  # type: ignore[arg-type]


GUARANTEED = container(limits={"cpu": "500m", "memory": "1Gi"})


def test_classes() -> None:
    assert qos_class(spec(container())) == "BestEffort"
    assert qos_class(spec(container(cpu="1m"))) == "Burstable"
    assert qos_class(spec(GUARANTEED)) == "Guaranteed"
    assert qos_class(spec(GUARANTEED, container())) == "Burstable"
    assert qos_class(spec(container(cpu="0", memory="0"))) == "BestEffort"
    of_pod = ResourceRequirements(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1", "memory": "1Gi"})
    assert qos_class(spec(container(cpu="1m"), resources=of_pod)) == "Guaranteed"
    assert qos_class(spec(container(cpu="1m"), resources=ResourceRequirements())) == "Burstable"


def test_oom_scores() -> None:
    assert oom_score_adj(spec(container()), container(), GIB) == 1000
    assert oom_score_adj(spec(GUARANTEED), GUARANTEED, GIB) == -997
    half = container(memory="512Mi")
    assert oom_score_adj(spec(half), half, GIB) == 500
    assert oom_score_adj(spec(half, priority_class_name="system-node-critical"), half, GIB) == -997
    assert oom_score_adj(spec(half), half, 0) == 3, "the machine's memory is unknown"
    sidecar, init = container("s", sidecar=True), container("i")
    assert oom_score_adj(spec(half, init=(sidecar, init)), sidecar, GIB) == 500
    assert oom_score_adj(spec(half, init=(sidecar, init)), init, GIB) == 999
    assert oom_score_adj(PodSpec(init_containers=(sidecar, half)), sidecar, GIB) == 999


def test_the_least_oom_score_adj_depends_on_capabilities() -> None:
    assert (least_oom_score_adj(["SYS_RESOURCE"]), least_oom_score_adj(["SYS_TIME"])) == (0, -1000)


def test_needs_of_a_pod() -> None:
    one = container(limits={"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"})
    assert needs(spec(one)) == PodNeeds(
        qos_class="Guaranteed",
        cpu_request_milli=1000,
        memory_request_bytes=GIB,
        cpu_limit_milli=1000,
        memory_limit_bytes=GIB,
        huge_pages={"hugepages-2Mi": 4 << 20},
        containers={
            one.name: ContainerNeeds(
                memory_request_bytes=GIB, memory_limit_bytes=GIB, huge_pages={"hugepages-2Mi": 4 << 20}
            )
        },
    )
    assert needs(spec(one, container())).cpu_limit_milli is None
    assert needs(PodSpec()) == PodNeeds(qos_class="BestEffort")


def test_resources_of_the_pod_replace_those_of_its_containers() -> None:
    of_pod = ResourceRequirements(
        limits={"cpu": "2", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi"}, requests={"cpu": "1500m"}
    )
    found = spec(container(cpu="100m", memory="1Mi"), resources=of_pod, overhead={"cpu": "10m", "memory": "1Mi"})
    assert pod_requests(found) == {"cpu": 1510, "memory": 2 << 20}
    assert pod_limits(found) == {"cpu": 2010, "hugepages-2Mi": 2 << 20}
    assert (needs(found).cpu_limit_milli, needs(found).memory_limit_bytes) == (2010, None)


def test_init_containers_need_their_resources_while_they_run() -> None:
    before, restartable, after = (
        container("i", cpu="300m"),
        container("s", sidecar=True, cpu="50m"),
        container("j", cpu="200m"),
    )
    assert pod_requests(spec(container(cpu="100m"), init=(before, restartable, after))) == {"cpu": 300}
    assert pod_requests(spec(container(cpu="200m"), init=(restartable, after))) == {"cpu": 250}
    assert pod_requests(spec(container(cpu="400m"), init=(before, restartable))) == {"cpu": 450}


def test_page_sizes() -> None:
    assert (page_size("hugepages-2Mi"), page_size("hugepages-1Gi")) == (2 << 20, GIB)


@given(st.integers(2, 262_144))
def test_weights_grow_with_shares(shares: int) -> None:
    weight = cgroups.weight(shares)
    assert 1 <= weight <= 10_000
    assert weight <= cgroups.weight(min(shares + 1, 262_144))
    assert cgroups.shares_of_weight(weight) <= shares, "rounding never gives more than was requested"


@given(st.integers(0, 10**7), st.integers(1_000, 10**6))
def test_quotas(milli: int, period: int) -> None:
    assert cgroups.quota(milli, period) == (0 if milli == 0 else max(1000, milli * period // 1000))


PATHS = [
    (("kubepods",), "kubepods", "kubepods.slice"),
    (("kubepods", "burstable"), "kubepods/burstable", "kubepods.slice/kubepods-burstable.slice"),
    (
        ("kubepods", "burstable", "pod1-2"),
        "kubepods/burstable/pod1-2",
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice",
    ),
    (("a-b", "kubepods", "podu"), "a-b/kubepods/podu", "a_b.slice/a_b-kubepods.slice/a_b-kubepods-podu.slice"),
]


@pytest.mark.parametrize(("path", "plain", "slices"), PATHS)
def test_names_of_both_drivers(path: tuple[str, ...], plain: str, slices: str) -> None:
    assert cgroups.folder(path, "cgroupfs") == plain
    assert cgroups.folder(path, "systemd") == slices
    assert cgroups.parent_argument(path, "cgroupfs") == f"/{plain}"
    assert cgroups.parent_argument(path, "systemd") == slices.rpartition("/")[2]
    assert cgroups.container_folder((*path, "c1"), "cgroupfs") == f"{plain}/c1"
    assert cgroups.container_folder((*path, "c1"), "systemd") == f"{slices}/docker-c1.scope"


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        ("pod1-2", "1-2"),
        ("kubepods-burstable-pod1_2.slice", "1-2"),
        ("kubepods-podu.slice", "u"),
        ("pod", None),
        ("burstable", None),
        ("kubepods-burstable.slice", None),
        ("0123abc", None),
    ],
)
def test_the_uid_of_a_cgroup_path(name: str, uid: str | None) -> None:
    assert cgroups.uid_of(name) == uid
