"""What only cgroup v2 with systemd has, beside what test_qos.py shows on either. cgroup2_machine_steps runs it, in a
machine that has both; under another name than a test's, for nobody else can.
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
from tests.e2e.resources.cgroup_files import folder, of_container, says
from tests.e2e.resources.qos_node import Shared, asking
from tests.support.docker import DRIVER, PrivateDocker
from tests.support.redis import private_redis
from tests.support.scratch import PATIENCE, wait_until

MIB, GIB, PAGE = 1 << 20, 1 << 30, 4096
HUGE_PAGES = 8


@pytest.fixture(scope="module")
def shared(docker_engine: PrivateDocker) -> Iterator[Shared]:
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
            yield Shared(node)
        finally:
            node.close()
            pages.write_text("0")  # they are memory that no other node has


def number(cgroup: str, file: str, beneath: str = "") -> int:
    """-1 for no limit."""
    text = (folder(cgroup) / beneath / file).read_text().strip()
    return -1 if text == "max" else int(text)


def memory(cgroup: str, beneath: str = "") -> tuple[int, ...]:
    return tuple(number(cgroup, f"memory.{name}", beneath) for name in ("min", "low", "high"))


def of_containers(shared: Shared, *names: str) -> list[tuple[int, ...]]:
    return [memory(shared.of(name), of_container(shared.node.running(name)["app"]["Id"])) for name in names]


def test_memory_is_protected_and_slowed_down_by_what_was_asked_for(shared: Shared) -> None:
    names = ("gold", "silver", "rest")
    shared.apply(
        a_pod("gold", shell("app", resources=asking("100m", "64Mi", ("100m", "64Mi")))),
        a_pod("silver", shell("app", resources=asking("100m", "64Mi", ("1", "128Mi")))),
        a_pod("rest", shell("app")),
    )
    shared.node.wait_until_running(*names)
    cgroups = [shared.all, shared.burstable, shared.best_effort, *map(shared.of, names)]
    asked, nothing = 64 * MIB, (0, 0, -1)
    wanted = [(2 * asked, 0, -1), (0, asked, -1), nothing, (asked, 0, -1), (0, asked, -1), nothing]
    slowed = (asked + int(0.9 * asked)) // PAGE * PAGE
    rest = int(0.9 * 8 * GIB) // PAGE * PAGE
    held = [(asked, 0, -1), (0, asked, slowed), (0, 0, rest)]
    assert list(map(memory, cgroups)) == wanted
    wait_until(lambda: of_containers(shared, *names) == held, "containers held right after their start")
    # systemd puts its own values back when it reads its units anew: they are the same.
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    assert list(map(memory, cgroups)) == wanted
    assert of_containers(shared, *names) == held
    assert shared.node.journal.events(qos.CgroupRestored) == []

    machine = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    pids = {name: shared.node.running(name) for name in names}
    found = {name: {part: oom_score_adj(one) for part, one in of.items()} for name, of in pids.items()}
    burstable = 1000 - 1000 * asked // machine
    expected = {"gold": -997, "silver": burstable, "rest": 1000}
    assert found == {name: {"app": much, "POD": -998} for name, much in expected.items()}
    shared.delete(*names)
    wait_until(lambda: slices_of_pods() == [], "the end of all slices of pods")


def test_killed_right_after_a_containers_start_the_next_agent_holds_it(shared: Shared) -> None:
    node = shared.node
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
        file = node.write("late.yaml", a_pod("late", shell("app", resources=asking("100m", "64Mi", ("1", "128Mi")))))
        assert agent.ended.wait(300 * PATIENCE)
        assert agent.status == -9
    finally:
        farm.end()
    container = node.running("late")["app"]["Id"]
    assert memory(shared.of("late"), of_container(container)) == (0, 0, -1)
    node.start()
    node.wait_until_running("late")
    slowed = (64 * MIB + int(0.9 * 64 * MIB)) // PAGE * PAGE
    wait_until(
        lambda: memory(shared.of("late"), of_container(container)) == (0, 64 * MIB, slowed),
        "the values of a container whose start was all that its agent came to",
    )
    assert node.running("late")["app"]["Id"] == container
    file.unlink()
    node.wait_until_gone("late")


def oom_score_adj(container: dict[str, Any]) -> int:
    return int(Path(f"/proc/{container['State']['Pid']}/oom_score_adj").read_text())


def slices_of_pods() -> list[str]:
    """The units that systemd still has of this test's pods."""
    listed = subprocess.run(
        ["systemctl", "list-units", "--plain", "--no-legend", "--type=slice", "*-two-kubepods-*pod*"],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.splitlines()


def test_huge_pages_go_to_whoever_asks(shared: Shared) -> None:
    pages = {"hugepages-2Mi": "4Mi", "memory": "32Mi", "cpu": "100m"}
    shared.apply(
        a_pod("huge", shell("app", resources={"limits": pages, "requests": pages})), a_pod("none", shell("app"))
    )
    shared.node.wait_until_running("huge", "none")
    cgroup = shared.of("huge")
    container = of_container(shared.node.running("huge")["app"]["Id"])
    assert number(shared.all, "hugetlb.2MB.max") == HUGE_PAGES * 2 * MIB
    assert number(cgroup, "hugetlb.2MB.max") == 4 * MIB
    wait_until(
        lambda: number(cgroup, "hugetlb.2MB.max", container) == 4 * MIB, "a container held right after its start"
    )
    assert number(shared.of("none"), "hugetlb.2MB.max") == 0
    more = pages | {"hugepages-2Mi": "14Mi"}
    shared.apply(a_pod("more", shell("app", resources={"limits": more, "requests": more})))
    shared.node.wait_for_status_column("more", "OutOfhugepages-2Mi")
    shared.delete("huge", "none", "more")


def test_killed_at_any_time_the_agent_ends_with_the_right_tree(shared: Shared) -> None:
    """kill -9 while pods come, and while they go."""
    draw = random.Random(7)
    names = [f"k{count}" for count in range(3)]
    for _ in range(2):
        shared.apply(*(a_pod(name, shell("app", resources=asking("100m", "32Mi"))) for name in names))
        killed_soon(shared, draw)
        shared.node.wait_until_running(*names)
        assert says("shares", shared.burstable) == 1 + (300 * 1024 // 1000 - 2) * 9999 // 262142
        assert shared.node.chronolet("delete", "pod", *names, "--now").status == 0
        killed_soon(shared, draw)
        for name in names:
            shared.node.wait_until_gone(name)
        shared.node.journal.wait_for("a tree without pods", lambda: not list(folder(shared.all).glob("**/*pod*pod*")))
    wait_until(lambda: slices_of_pods() == [], "the end of all slices of pods")


def killed_soon(shared: Shared, draw: random.Random) -> None:
    """After some more events."""
    seen = len(shared.node.journal.lines) + draw.randrange(25)
    shared.node.journal.wait_for(f"{seen} events", lambda: len(shared.node.journal.lines) >= seen)
    shared.node.kill9()
    shared.node.start()


def test_the_engine_is_systemds() -> None:
    assert DRIVER == "systemd"
