"""The desired tree, admission, and allocatable resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronolet.qos.admission import refusal
from chronolet.qos.allocatable import allocatable, enforced, problem
from chronolet.qos.decider import DECIDER
from chronolet.qos.sharing import Means, Sharing, described
from chronolet.qos.sharing import problem as wrong
from chronolet.qos.state import Share, State
from chronolet.qos.tree import bearable, wanted
from chronolet.rules.resources.cgroups import LEAST_SHARES, Cgroup, Values, shares
from chronolet_schemas import qos
from chronolet_schemas.qos import Amounts
from chronolet_schemas.resources import PodNeeds
from tests.deciders.qos.nodes import GIB, need, node
from tests.support.counting import Counted, counted

MIB = 1 << 20


def tree(*needs: PodNeeds, **of_node: Any) -> dict[str, Values]:
    """Return the values of the tree's cgroups by path; pods are named podu0, podu1 and so on."""
    state = State(node=node(**of_node))
    for number, one in enumerate(needs):
        share = Share(pod=f"default/p{number}", needs=one, phase="ready")
        state = State(node=state.node, shares=state.shares.set(f"u{number}", share))
    return {"/".join(one.path): one.values for one in wanted(state)}


SEED = (
    need("Guaranteed", cpu=1000, memory=GIB),
    need("Burstable", cpu=2000, memory=2 * GIB, cpu_limit_milli=3000, memory_limit_bytes=3 * GIB),
    need("BestEffort"),
)


def test_the_documented_example() -> None:
    """Three pods, three processors, 8 GiB, and all memory requests reserved: the numbers are those documented."""
    assert tree(*SEED, memory_reserved_percent=100) == {
        "kubepods": Values(cpu_shares=3072, memory_limit_bytes=8 * GIB),
        "kubepods/burstable": Values(cpu_shares=2048, memory_limit_bytes=7 * GIB),
        "kubepods/besteffort": Values(cpu_shares=2, memory_limit_bytes=5 * GIB),
        "kubepods/podu0": Values(cpu_shares=1024, cpu_quota_us=100_000, cpu_period_us=100_000, memory_limit_bytes=GIB),
        "kubepods/burstable/podu1": Values(
            cpu_shares=2048, cpu_quota_us=300_000, cpu_period_us=100_000, memory_limit_bytes=3 * GIB
        ),
        "kubepods/besteffort/podu2": Values(cpu_shares=2),
    }


def test_memory_is_protected_on_cgroup_v2_if_configured() -> None:
    found = tree(*SEED, version=2, memory_reservation="TieredReservation")
    assert found["kubepods"].memory_min_bytes == 3 * GIB
    assert found["kubepods/burstable"].memory_low_bytes == 2 * GIB
    assert found["kubepods/podu0"].memory_min_bytes == GIB
    assert found["kubepods/burstable/podu1"].memory_low_bytes == 2 * GIB
    for version, policy in ((1, "TieredReservation"), (2, "None")):
        plain = tree(*SEED, version=version, memory_reservation=policy).values()
        assert not any(one.memory_min_bytes or one.memory_low_bytes for one in plain)


def test_processes_and_huge_pages_are_limited() -> None:
    pages = {"hugepages-1Gi": GIB, "hugepages-2Mi": 10 * MIB}
    much = Amounts(cpu_milli=2000, memory_bytes=GIB, pids=30_000, huge_pages=pages)
    small = need(huge_pages={"hugepages-2Mi": 4 * MIB})
    found = tree(small, need("BestEffort"), capacity=much, enforced=much, pod_pids=50)
    assert found["kubepods"].pids == 30_000
    assert found["kubepods"].huge_pages == ((GIB, GIB), (2 * MIB, 10 * MIB))
    assert found["kubepods/burstable"].huge_pages == ((GIB, 1 << 62), (2 * MIB, 1 << 62))
    assert found["kubepods/burstable/podu0"].huge_pages == ((GIB, 0), (2 * MIB, 4 * MIB))
    assert found["kubepods/besteffort/podu1"].huge_pages == ((GIB, 0), (2 * MIB, 0))
    assert [found[name].pids for name in ("kubepods/burstable/podu0", "kubepods/besteffort/podu1")] == [50, 50]


def test_there_is_no_tree_without_cgroups_and_none_for_waiting_pods() -> None:
    assert wanted(State()) == ()
    assert wanted(State(node=node(version=0))) == ()
    waits = Share(pod="default/p", needs=need(), phase="waiting")
    assert len(wanted(State(node=node(), shares=State().shares.set("u", waits)))) == 3


def test_a_limit_that_the_kernel_refuses_falls_back_to_the_present_use() -> None:
    assert (bearable(10, 5), bearable(10, 15)) == (10, 15)


_needs = st.builds(
    need,
    st.sampled_from(["Guaranteed", "Burstable", "BestEffort"]),
    cpu=st.integers(0, 400_000),
    memory=st.integers(0, 1 << 40),
)


@settings(max_examples=200)
@given(st.lists(_needs, max_size=12), st.none() | st.integers(0, 100))
def test_the_tree_is_consistent_for_random_pods(pods: list[PodNeeds], percent: int | None) -> None:
    found = tree(*pods, memory_reserved_percent=percent)
    assert len(found) == len(pods) + 3
    paths = list(found)
    for number, path in enumerate(paths):
        assert path == "kubepods" or path.rpartition("/")[0] in paths[:number], "a parent comes before its children"
    for values in found.values():
        assert values.cpu_shares is not None
        assert LEAST_SHARES <= values.cpu_shares <= 262_144
    burstable = [one.cpu_request_milli for one in pods if one.qos_class == "Burstable"]
    assert found["kubepods/burstable"].cpu_shares == shares(sum(burstable))
    assert found["kubepods/besteffort"].cpu_shares == LEAST_SHARES
    limits = [found[f"kubepods/{name}"].memory_limit_bytes for name in ("burstable", "besteffort")]
    if percent is None:
        assert limits == [None, None]
    else:
        middle, low = limits
        assert middle is not None
        assert low is not None
        assert 0 <= low <= middle <= 8 * GIB
    assert tree(*pods, memory_reserved_percent=percent) == found, "the result is deterministic"


def test_the_tree_of_110_pods_takes_a_few_calls_per_pod() -> None:
    """The host computes the tree after each step, so the cost per pod must not grow."""
    few, many = tree_of(55), tree_of(110)
    keep: Any = many.answer[-1]
    assert len(keep.tree) == 113
    assert all(isinstance(one, Cgroup) for one in keep.tree)
    assert many.python < 2 * few.python + 10
    assert many.python < 60 * 110, many.python


def tree_of(pods: int) -> Counted[Sequence[Any]]:
    state = State(node=node(memory_reserved_percent=100))
    for number in range(pods):
        event = qos.PodAdmitted(pod=f"default/p{number}", uid=f"u{number}", needs=SEED[number % 3])
        state = DECIDER.evolve(state, event) or state
    return counted(lambda: DECIDER.outstanding(state))


# -- admission -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "needs", "resource", "numbers"),
    [
        (5, need("BestEffort"), "pods", (1, 5, 5)),
        (1, need(cpu=2501), "cpu", (2501, 500, 3000)),
        (1, need(memory=7 * GIB + 1), "memory", (7 * GIB + 1, GIB, 8 * GIB)),
        (0, need(huge_pages={"hugepages-2Mi": 2 * MIB}), "hugepages-2Mi", (2 * MIB, 0, 0)),
    ],
)
def test_pods_that_do_not_fit(others: int, needs: PodNeeds, resource: str, numbers: tuple[int, int, int]) -> None:
    found = refusal(node(max_pods=5), [need()] * others, needs)
    assert found is not None
    assert found.reason == f"OutOf{resource}"
    requested, used, capacity = numbers
    assert found.message == (
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    )


def test_pods_that_fit() -> None:
    much = Amounts(cpu_milli=1000, memory_bytes=GIB, huge_pages={"hugepages-2Mi": 4 * MIB})
    pages = need(huge_pages={"hugepages-2Mi": 2 * MIB}, memory=0)
    assert refusal(node(allocatable=much), [pages], pages) is None
    assert refusal(node(), [need(cpu=9000, memory=99 * GIB)], need("BestEffort")) is None, "it requests nothing"


# -- allocatable resources -----------------------------------------------------------------------------------

MACHINE = Amounts(cpu_milli=2000, memory_bytes=4 * GIB, pids=1000, huge_pages={"hugepages-2Mi": 100 * MIB})


def test_reservations_reduce_the_allocatable_resources() -> None:
    system, kube = Amounts(cpu_milli=200, memory_bytes=GIB), Amounts(cpu_milli=100, pids=100)
    assert enforced(MACHINE, system, kube) == Amounts(
        cpu_milli=1700, memory_bytes=3 * GIB - 100 * MIB, pids=900, huge_pages={"hugepages-2Mi": 100 * MIB}
    )
    assert allocatable(MACHINE, 100 * MIB, system, kube).memory_bytes == 3 * GIB - 200 * MIB
    assert problem(MACHINE, 100 * MIB, system, kube) is None


def test_no_amount_is_negative() -> None:
    all_of_it = Amounts(cpu_milli=9000, memory_bytes=9 * GIB, pids=9000, huge_pages={"hugepages-2Mi": GIB})
    assert enforced(MACHINE, all_of_it) == Amounts(pids=1, huge_pages={"hugepages-2Mi": 0})
    assert enforced(Amounts(), all_of_it) == Amounts()


@pytest.mark.parametrize(
    ("kept", "resource"),
    [
        (Amounts(cpu_milli=2001), "cpu"),
        (Amounts(memory_bytes=4 * GIB), "memory"),
        (Amounts(pids=1001), "pid"),
        (Amounts(huge_pages={"hugepages-1Gi": 1}), "hugepages-1Gi"),
    ],
)
def test_no_more_can_be_reserved_than_exists(kept: Amounts, resource: str) -> None:
    problem_text = problem(MACHINE, 1, kept)
    assert problem_text is not None
    assert f'Resource "{resource}" has a reservation of' in problem_text


# -- node's settings --------------------------------------------------------------------------------------------------


def test_a_node_is_described_by_its_settings() -> None:
    sharing = Sharing(
        name="n1",
        above=("mine",),
        system_reserved={"cpu": "200m", "memory": "512Mi", "pid": "100"},
        kube_reserved={"cpu": "100m", "hugepages-2Mi": "20Mi"},
        eviction_hard={"memory.available": "100Mi", "nodefs.available": "10%"},
        memory_reserved_percent=50,
        pod_pids=64,
    )
    found = described(sharing, MACHINE, Means(version=2, driver="systemd", lost=("x",)))
    pages = {"hugepages-2Mi": 80 * MIB}
    memory = 4 * GIB - 512 * MIB - 80 * MIB
    assert found == qos.Node(
        name="n1",
        capacity=MACHINE,
        enforced=Amounts(cpu_milli=1700, memory_bytes=memory, pids=900, huge_pages=pages),
        allocatable=Amounts(cpu_milli=1700, memory_bytes=memory - 100 * MIB, pids=900, huge_pages=pages),
        max_pods=110,
        version=2,
        driver="systemd",
        root=("mine", "kubepods"),
        pod_pids=64,
        memory_reserved_percent=50,
        unlimited_memory_bytes=4 * GIB - 512 * MIB,
        lost=("x",),
    )
    assert wrong(sharing, MACHINE) is None


def test_settings_that_reserve_less_or_too_much() -> None:
    sharing = Sharing(name="n", enforce=False, system_reserved={"cpu": "1"}, capacity={"cpu": "3", "memory": "8Gi"})
    found = described(sharing, MACHINE, Means())
    assert (found.enforced, found.root) == (found.capacity, ())
    assert (found.capacity.cpu_milli, found.capacity.memory_bytes, found.capacity.pids) == (3000, 8 * GIB, 1000)
    assert found.allocatable.cpu_milli == 2000
    tenth = Sharing(name="n", eviction_hard={"memory.available": "10%"}, capacity={"memory": "1000"})
    assert described(tenth, Amounts(), Means()).allocatable.memory_bytes == 900
    problem_text = wrong(Sharing(name="n", kube_reserved={"memory": "5Gi"}), MACHINE)
    assert problem_text == (
        'invalid Node Allocatable configuration. Resource "memory" has a reservation of 5368709120, '
        "capacity of 4294967296"
    )
