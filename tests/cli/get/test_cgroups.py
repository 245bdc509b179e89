"""`get cgroups`: desired values from the log next to the actual values in the kernel's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chronolet.adapters.cgroups import KernelOfFiles
from chronolet.qos.decider import DECIDER
from chronolet.qos.state import State
from chronolet.qos.tree import wanted as desired_tree
from chronolet_schemas import qos
from chronolet_schemas.envelope import Event
from chronolet_schemas.resources import ContainerNeeds, PodNeeds
from tests.cli.support.written_node import WrittenNode
from tests.deciders.qos.nodes import need, node


@pytest.fixture
def kernel(tmp_path: Path) -> KernelOfFiles:
    return KernelOfFiles(tmp_path, 1)


@pytest.fixture
def shared(kernel: KernelOfFiles) -> WrittenNode:
    """A node with three pods, whose cgroups have the desired values."""
    return written(kernel)


def written(kernel: KernelOfFiles) -> WrittenNode:
    found, state = WrittenNode(), State()
    found.cgroups = kernel
    described = node(memory_reserved_percent=100, version=kernel.version)
    events: list[Event] = [qos.NodeDescribed(node=described)]
    for uid, name, needs in (
        ("u1", "gold", need("Guaranteed", cpu=1000)),
        ("u2", "silver", need("Burstable", cpu=500)),
        ("u3", "rest", need("BestEffort")),
    ):
        events.append(qos.PodAdmitted(pod=f"default/{name}", uid=uid, needs=needs))
    for event in events:
        state = DECIDER.evolve(state, event) or state
    found.write("qos/node", *events)
    tree = kernel.tree("cgroupfs")
    assert tree is not None
    for one in desired_tree(state):
        for step in tree.missing(one):
            tree.take(step)
    return found


def test_a_cell_has_the_desired_and_the_actual_value(shared: WrittenNode, kernel: KernelOfFiles) -> None:
    (kernel.folder / "cpu/kubepods/burstable/podu2/cpu.shares").write_text("7")
    tree = kernel.tree("cgroupfs")
    assert tree is not None
    tree.remove(("kubepods", "besteffort", "podu3"))
    result = shared.run("get", "cgroups")
    assert (result.status, result.errors) == (0, "")
    assert result.output == (
        "NAME           POD              CPU         QUOTA           MEMORY                  PIDS\n"
        "kubepods                        3072/3072   max/max         8589934592/8589934592   max/max\n"
        "  burstable                     512/512     max/max         7516192768/7516192768   max/max\n"
        "  besteffort                    2/2         max/max         6442450944/6442450944   max/max\n"
        "  podu1        default/gold     1024/1024   100000/100000   1073741824/1073741824   max/max\n"
        "    podu2      default/silver   512/7       max/max         max/max                 max/max\n"
        "    podu3      default/rest     2/?         max/?           max/?                   max/?\n"
    )


def test_a_cgroup_can_be_named_by_its_pod(shared: WrittenNode) -> None:
    result = shared.run("get", "cgroup", "default/gold", "-o", "json")
    found = json.loads(result.output)
    assert (found["name"], found["uid"]) == ("kubepods/podu1", "u1")
    assert found["values"]["cpu.shares"] == {"wanted": "1024", "found": "1024"}
    assert "PERIOD" in shared.run("get", "cg", "-o", "wide").output
    result = shared.run("get", "cgroups", "default/nobody")
    assert (result.status, result.errors) == (1, 'Error from server (NotFound): cgroups "default/nobody" not found\n')


def test_quota_and_period_of_cgroup_v2_have_a_column_each(tmp_path: Path) -> None:
    kernel = KernelOfFiles(tmp_path, 2)
    shared = written(kernel)
    (kernel.folder / "kubepods/podu1/cpu.max").write_text("max 100000")
    lines = shared.run("get", "cgroups", "-o", "wide").output.splitlines()
    cells = [line.split() for line in lines]
    assert [row[:4] for row in cells[1:3]] == [
        ["kubepods", "118/118", "max/max", "8589934592/8589934592"],
        ["burstable", "20/20", "max/max", "7516192768/7516192768"],
    ]
    gold = next(row for row in cells if row[0] == "podu1")
    assert (gold[3], gold[6]) == ("100000/max", "100000/100000")


def test_cgroups_of_running_containers_are_listed_below_their_pod(tmp_path: Path) -> None:
    kernel = KernelOfFiles(tmp_path, 2)
    shared = written(kernel)
    shared.write(
        "qos/node",
        qos.NodeDescribed(node=node(version=2, memory_reservation="TieredReservation")),
        qos.PodAdmitted(pod="default/gold", uid="u1", needs=GOLD),
        qos.ContainerKept(pod="default/gold", uid="u1", container="app", id="c1"),
        qos.ContainerKept(pod="default/gold", uid="u1", container="ended", id="c0"),
    )
    (kernel.folder / "kubepods/podu1/cgroup.subtree_control").write_text("memory")
    kernel.make(f"{kernel.folder}/kubepods/podu1/c1")
    lines = [line.split() for line in shared.run("get", "cgroups", "-o", "wide").output.splitlines()]
    assert [row[0] for row in lines if "default/gold" in row] == ["podu1", "app"]
    assert next(row for row in lines if row[0] == "app") == ["app", "default/gold", "1073741824/0"]
    found = json.loads(shared.run("get", "cgroup", "kubepods/podu1/c1", "-o", "json").output)
    assert (found["uid"], found["container"]) == ("u1", "app")
    assert found["values"] == {"memory.min": {"wanted": "1073741824", "found": "0"}}


GOLD = PodNeeds(qos_class="Guaranteed", containers={"app": ContainerNeeds(memory_request_bytes=1 << 30)})


def test_a_node_without_cgroups_has_no_resources() -> None:
    result = WrittenNode().run("get", "cgroups")
    assert (result.status, result.output, result.errors) == (0, "", "No resources found.\n")
    result = WrittenNode().run("get", "cgroups", "-l", "a=b")
    assert result.status == 2
    assert "found a selector with cgroups, expected pods or containers" in result.errors
