"""QoS features that exist only on cgroup v2 with systemd; test_qos.py tests those that both cgroup versions have.

cgroup2_machine_steps runs this file on a separate machine. It is not named test_*.py, because it would fail elsewhere.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronolet_schemas import qos
from tests.e2e.fault_injection.agent_farm import AgentFarm
from tests.e2e.fault_injection.points import Point
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.resources.cgroup_files import folder, of_container, value
from tests.e2e.resources.qos_node import QosNode, requests_and_limits
from tests.support.docker.engine import DRIVER, PrivateDocker
from tests.support.redis.server import private_redis
from tests.support.scratch import PATIENCE, wait_until

MIB, GIB, PAGE = 1 << 20, 1 << 30, 4096
HUGE_PAGES = 8


@pytest.fixture(scope="module")
def qos_node(docker_engine: PrivateDocker) -> Iterator[QosNode]:
    pages = Path("/proc/sys/vm/nr_hugepages")
    pages.write_text(str(HUGE_PAGES))
    with private_redis() as server:
        node = Node(docker_engine, server.url, "two", server.folder / "agent")
        node.environ |= {
            "CHRONOLET_NODE_CAPACITY": "cpu=3,memory=8Gi",
            "CHRONOLET_MEMORY_RESERVATION_POLICY": "TieredReservation",
            "CHRONOLET_MEMORY_THROTTLING_FACTOR": "0.9",
        }
        try:
            node.start()
            yield QosNode(node)
        finally:
            node.close()
            pages.write_text("0")  # reserved huge pages would reduce the memory for other nodes


def number(cgroup: str, file: str, beneath: str = "") -> int:
    """Return the number in a file of a cgroup; -1 if it is `max`, which means no limit."""
    text = (folder(cgroup) / beneath / file).read_text().strip()
    return -1 if text == "max" else int(text)


def memory(cgroup: str, beneath: str = "") -> tuple[int, ...]:
    return tuple(number(cgroup, f"memory.{name}", beneath) for name in ("min", "low", "high"))


def of_containers(qos_node: QosNode, *names: str) -> list[tuple[int, ...]]:
    return [memory(qos_node.of(name), of_container(qos_node.node.running(name)["app"]["Id"])) for name in names]


def test_memory_is_protected_and_throttled_by_requests(qos_node: QosNode) -> None:
    names = ("gold", "silver", "rest")
    qos_node.apply(
        a_pod("gold", shell("app", resources=requests_and_limits("100m", "64Mi", ("100m", "64Mi")))),
        a_pod("silver", shell("app", resources=requests_and_limits("100m", "64Mi", ("1", "128Mi")))),
        a_pod("rest", shell("app")),
    )
    qos_node.node.wait_until_running(*names)
    cgroups = [qos_node.all, qos_node.burstable, qos_node.best_effort, *map(qos_node.of, names)]
    requested, nothing = 64 * MIB, (0, 0, -1)
    expected_values = [
        (2 * requested, 0, -1),
        (0, requested, -1),
        nothing,
        (requested, 0, -1),
        (0, requested, -1),
        nothing,
    ]
    slowed = (requested + int(0.9 * requested)) // PAGE * PAGE
    rest = int(0.9 * 8 * GIB) // PAGE * PAGE
    limits = [(requested, 0, -1), (0, requested, slowed), (0, 0, rest)]
    assert list(map(memory, cgroups)) == expected_values
    wait_until(lambda: of_containers(qos_node, *names) == limits, "limits of containers right after their start")
    # When systemd reloads its units, it writes the values that it knows: they must be the same.
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    assert list(map(memory, cgroups)) == expected_values
    assert of_containers(qos_node, *names) == limits
    assert qos_node.node.journal.events(qos.CgroupRestored) == []

    machine = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    pids = {name: qos_node.node.running(name) for name in names}
    found = {name: {part: oom_score_adj(one) for part, one in of.items()} for name, of in pids.items()}
    burstable = 1000 - 1000 * requested // machine
    expected = {"gold": -997, "silver": burstable, "rest": 1000}
    assert found == {name: {"app": much, "POD": -998} for name, much in expected.items()}
    qos_node.delete(*names)
    wait_until(lambda: slices_of_pods() == [], "the removal of all slices of pods")


def test_the_next_agent_limits_a_container_whose_agent_was_killed_at_its_start(qos_node: QosNode) -> None:
    node = qos_node.node
    node.kill9()
    point = Point(place="effect/after docker.start pod/default/late container/app")
    job = node.job(point=point)
    flags = job.flags | {
        "memory_reservation_policy": "TieredReservation",
        "memory_throttling_factor": "0.9",
        "node_capacity": node.environ["CHRONOLET_NODE_CAPACITY"],
    }
    farm = AgentFarm()
    try:
        agent = farm.start(replace(job, flags=flags))
        file = node.write(
            "late.yaml", a_pod("late", shell("app", resources=requests_and_limits("100m", "64Mi", ("1", "128Mi"))))
        )
        assert agent.ended.wait(300 * PATIENCE)
        assert agent.status == -9
    finally:
        farm.end()
    container = node.running("late")["app"]["Id"]
    assert memory(qos_node.of("late"), of_container(container)) == (0, 0, -1)
    node.start()
    node.wait_until_running("late")
    slowed = (64 * MIB + int(0.9 * 64 * MIB)) // PAGE * PAGE
    wait_until(
        lambda: memory(qos_node.of("late"), of_container(container)) == (0, 64 * MIB, slowed),
        "the limits of a container whose agent was killed at its start",
    )
    assert node.running("late")["app"]["Id"] == container
    file.unlink()
    node.wait_until_gone("late")


def oom_score_adj(container: dict[str, Any]) -> int:
    return int(Path(f"/proc/{container['State']['Pid']}/oom_score_adj").read_text())


def slices_of_pods() -> list[str]:
    """Return the units of this test's pods that systemd still has."""
    listed = subprocess.run(
        ["systemctl", "list-units", "--plain", "--no-legend", "--type=slice", "*-two-kubepods-*pod*"],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.splitlines()


def test_huge_pages_are_limited_by_request(qos_node: QosNode) -> None:
    pages = {"hugepages-2Mi": "4Mi", "memory": "32Mi", "cpu": "100m"}
    qos_node.apply(
        a_pod("huge", shell("app", resources={"limits": pages, "requests": pages})), a_pod("none", shell("app"))
    )
    qos_node.node.wait_until_running("huge", "none")
    cgroup = qos_node.of("huge")
    container = of_container(qos_node.node.running("huge")["app"]["Id"])
    assert number(qos_node.all, "hugetlb.2MB.max") == HUGE_PAGES * 2 * MIB
    assert number(cgroup, "hugetlb.2MB.max") == 4 * MIB
    wait_until(
        lambda: number(cgroup, "hugetlb.2MB.max", container) == 4 * MIB,
        "the limit of a container right after its start",
    )
    assert number(qos_node.of("none"), "hugetlb.2MB.max") == 0
    more = pages | {"hugepages-2Mi": "14Mi"}
    qos_node.apply(a_pod("more", shell("app", resources={"limits": more, "requests": more})))
    qos_node.node.wait_for_status_column("more", "OutOfhugepages-2Mi")
    qos_node.delete("huge", "none", "more")


def test_kills_at_any_time_leave_the_right_tree(qos_node: QosNode) -> None:
    """The agent is killed with kill -9 while pods are added and while they are removed."""
    draw = random.Random(7)
    names = [f"k{count}" for count in range(3)]
    for _ in range(2):
        qos_node.apply(*(a_pod(name, shell("app", resources=requests_and_limits("100m", "32Mi"))) for name in names))
        kill_soon(qos_node, draw)
        qos_node.node.wait_until_running(*names)
        assert value("shares", qos_node.burstable) == 1 + (300 * 1024 // 1000 - 2) * 9999 // 262142
        assert qos_node.node.chronolet("delete", "pod", *names, "--now").status == 0
        kill_soon(qos_node, draw)
        for name in names:
            qos_node.node.wait_until_gone(name)
        qos_node.node.journal.wait_for(
            "a tree without pods", lambda: not list(folder(qos_node.all).glob("**/*pod*pod*"))
        )
    wait_until(lambda: slices_of_pods() == [], "the removal of all slices of pods")


def kill_soon(qos_node: QosNode, draw: random.Random) -> None:
    """Kill the agent after up to 24 more events, and restart it."""
    seen = len(qos_node.node.journal.lines) + draw.randrange(25)
    qos_node.node.journal.wait_for(f"{seen} events", lambda: len(qos_node.node.journal.lines) >= seen)
    qos_node.node.kill9()
    qos_node.node.start()


def test_the_engine_is_systemds() -> None:
    assert DRIVER == "systemd"
