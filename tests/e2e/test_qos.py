"""QoS on the machine's own cgroups: the article's numbers, processor time by shares, memory's end, who does not fit.

On a machine with cgroup v1; tests/setup/cgroup2 does the like on v2 with systemd.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet_schemas import kube_events, pod, qos
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.docker import PrivateDocker
from tests.support.redis import private_redis
from tests.support.scratch import wait_until

MIB, GIB = 1 << 20, 1 << 30
SPIN = "while :; do :; done"
HOG = "x=a; while :; do x=$x$x; done"
BUSY_SECONDS = 4.0


class Shared:
    """A node of three processors and 8 GiB, as its settings have it, and its cgroups."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.top = node.engine.cgroup_root(node.name).lstrip("/")

    def folder(self, controller: str, *names: str) -> Path:
        return Path("/sys/fs/cgroup", controller, self.top, "kubepods", *names)

    def says(self, file: str, *names: str) -> int:
        return int((self.folder(file.split(".", maxsplit=1)[0], *names) / file).read_text())

    def uid(self, name: str) -> str:
        accepted: Any = self.node.journal.wait_for_event(pod.SpecAccepted, pod=f"default/{name}")
        return str(accepted.uid)

    def of(self, name: str) -> tuple[str, ...]:
        """The path of a pod's cgroup beneath kubepods."""
        ready: Any = self.node.journal.wait_for_event(qos.CgroupReady, uid=self.uid(name))
        return tuple(str(ready.parent).split("/kubepods/")[1].split("/"))

    def apply(self, *pods: dict[str, Any]) -> None:
        said = self.node.chronolet("apply", "-f", self.node.aside("pods.yaml", *pods))
        assert said.status == 0, said.err

    def delete(self, *names: str) -> None:
        assert self.node.chronolet("delete", "pod", *names, "--now").status == 0
        for name in names:
            self.node.wait_until_gone(name)


@pytest.fixture(scope="module")
def shared(docker_engine: PrivateDocker) -> Iterator[Shared]:
    with private_redis() as server:
        node = Node(docker_engine, server.url, "qos", server.folder / "agent")
        node.environ |= {
            "CHRONOLET_NODE_CAPACITY": "cpu=3,memory=8Gi",
            "CHRONOLET_QOS_RESERVED": "memory=100%",
            "CHRONOLET_MAX_PODS": "4",
        }
        try:
            node.start()
            yield Shared(node)
        finally:
            node.close()


def resources(cpu: str, memory: str, limit: tuple[str, str] | None = None) -> dict[str, Any]:
    asked = {"cpu": cpu, "memory": memory}
    return {"requests": asked} | ({"limits": {"cpu": limit[0], "memory": limit[1]}} if limit else {})


def test_the_seeds_example(shared: Shared) -> None:
    """Three pods on three processors and 8 GiB: the numbers of the article, in the kernel."""
    whole = ("1", "1Gi")
    shared.apply(
        a_pod("gold", shell("c3", resources=resources(*whole, whole))),
        a_pod(
            "silver",
            shell("c1", resources=resources(*whole, whole)),
            shell("c2", resources=resources(*whole, ("2", "2Gi"))),
        ),
        a_pod("rest", shell("c4")),
    )
    shared.node.wait_until_running("gold", "silver", "rest")
    gold, silver, rest = shared.of("gold"), shared.of("silver"), shared.of("rest")
    shares = {names: shared.says("cpu.shares", *names) for names in ((), ("burstable",), ("besteffort",), gold, silver)}
    assert list(shares.values()) == [3072, 2048, 2, 1024, 2048]
    assert shared.says("cpu.shares", *rest) == 2
    containers = {
        name: shared.says("cpu.shares", *of, shared.node.running(one)[name]["Id"])
        for one, name, of in (("gold", "c3", gold), ("silver", "c1", silver), ("silver", "c2", silver))
    }
    assert containers == {"c3": 1024, "c1": 1024, "c2": 1024}
    assert shared.says("memory.limit_in_bytes") == 8 * GIB
    assert shared.says("memory.limit_in_bytes", "burstable") == 7 * GIB
    assert shared.says("memory.limit_in_bytes", "besteffort") == 5 * GIB
    assert [shared.says("memory.limit_in_bytes", *names) for names in (gold, silver)] == [GIB, 3 * GIB]
    assert [shared.says("cpu.cfs_quota_us", *names) for names in (gold, silver, rest)] == [100_000, 300_000, -1]
    assert (gold[0], silver[0], rest[0]) == (f"pod{shared.uid('gold')}", "burstable", "besteffort")

    said = shared.node.chronolet("get", "pods", "-o", "wide").out
    assert [line.split()[-1] for line in said.splitlines()[1:]] == ["Guaranteed", "BestEffort", "Burstable"]
    assert "QoS Class:                   Burstable" in shared.node.chronolet("describe", "pod", "silver").out
    rows = [line.split() for line in shared.node.chronolet("get", "cgroups").out.splitlines()]
    assert ["kubepods", "3072/3072", "max/max", f"{8 * GIB}/{8 * GIB}"] == rows[1][:4]
    assert len(rows) == 7
    assert all(cell.split("/")[0] == cell.split("/")[1] for row in rows[1:] for cell in row[-4:])
    shared.delete("gold", "silver", "rest")
    assert (shared.says("cpu.shares", "burstable"), shared.says("memory.limit_in_bytes", "besteffort")) == (2, 8 * GIB)
    for controller in ("cpu", "memory", "pids", "freezer", "devices"):
        left = [path.name for path in shared.folder(controller).glob("**/pod*")]
        assert left == [], f"{controller}: {left}"


def test_processor_time_goes_by_what_was_asked_for(shared: Shared) -> None:
    """1500 to 500 on one processor, and next to nothing for who asked for nothing."""
    shared.apply(
        a_pod("much", shell("app", SPIN, resources={"requests": {"cpu": "1500m"}})),
        a_pod("little", shell("app", SPIN, resources={"requests": {"cpu": "500m"}})),
        a_pod("none", shell("app", SPIN)),
    )
    names = ("much", "little", "none")
    shared.node.wait_until_running(*names)
    last = max(os.sched_getaffinity(0))
    for name in names:
        os.sched_setaffinity(shared.node.running(name)["app"]["State"]["Pid"], {last})
    before = [used(shared, name) for name in names]
    time.sleep(BUSY_SECONDS)
    much, little, none = (used(shared, name) - began for name, began in zip(names, before, strict=True))
    assert much + little > 0.1 * BUSY_SECONDS * 1e9, "they were busy"
    assert abs(much / little - 3) < 0.3, (much, little, none)
    assert none < 0.01 * (much + little), (much, little, none)
    shared.delete(*names)


def used(shared: Shared, name: str) -> int:
    """Nanoseconds of processor time that a pod has had."""
    return shared.says("cpuacct.usage", *shared.of(name))


@pytest.mark.parametrize("whose", ["container", "child", "pod"])
def test_who_uses_more_memory_than_allowed_is_killed_and_named(shared: Shared, whose: str) -> None:
    """Also where a child of it was killed and it ended by itself, and where the limit is that of all its pod."""
    script = f"sh -c '{HOG}'; exit 3" if whose == "child" else HOG
    limit = {"limits": {"cpu": "1", "memory": "32Mi"}}
    name = f"hog-{whose}"
    one = shell("app", script, **({} if whose == "pod" else {"resources": limit}))
    more = {"resources": {"limits": {"memory": "32Mi"}}} if whose == "pod" else {}
    shared.apply(a_pod(name, one, restartPolicy="Never", **more))
    if whose == "pod":
        shared.node.journal.wait_for_event(pod.SpecAccepted, pod=f"default/{name}")
    died: Any = shared.node.journal.wait_for_event(pod.ContainerExited, pod=f"default/{name}", container="app")
    shared.node.wait_for_status(name, "OOMKilled")
    assert died.exit_code == (3 if whose == "child" else 137)
    status: Any = shared.node.journal.status(f"default/{name}")
    assert status.container_statuses[0].state.terminated.reason == "OOMKilled"
    assert "OOMKilled" in shared.node.chronolet("get", "pods").line(name)
    shared.delete(name)


def test_who_does_not_fit_is_rejected_in_the_kubelets_words(shared: Shared) -> None:
    said = "Node didn't have enough resource: cpu, requested: 3001, used: 0, capacity: 3000"
    shared.apply(a_pod("big", shell("app", resources={"requests": {"cpu": "3001m"}})))
    shared.node.wait_for_column("big", "OutOfcpu")
    status: Any = shared.node.journal.status("default/big")
    assert (status.phase, status.reason, status.message) == ("Failed", "OutOfcpu", f"Pod was rejected: {said}")
    told: Any = shared.node.journal.wait_for_event(kube_events.Recorded, reason="OutOfcpu")
    assert (told.severity, told.message) == ("Warning", said)
    assert shared.node.running("big") == {}
    shared.apply(a_pod("fat", shell("app", resources={"requests": {"memory": "9Gi"}})))
    shared.node.wait_for_column("fat", "OutOfmemory")
    shared.apply(*(a_pod(f"n{number}", shell("app")) for number in range(5)))
    shared.node.journal.wait_for(
        "four pods that run and one that does not",
        lambda: sorted(shared.node.column(f"n{number}") for number in range(5)) == ["OutOfpods", *["Running"] * 4],
    )
    shared.delete("big", "fat", *(f"n{number}" for number in range(5)))


def test_what_somebody_changes_is_put_right_and_said(shared: Shared) -> None:
    shared.apply(a_pod("kept", shell("app", resources={"requests": {"cpu": "100m"}})))
    shared.node.wait_until_running("kept")
    mine = shared.of("kept")
    (shared.folder("cpu", *mine) / "cpu.shares").write_text("7")
    shared.apply(a_pod("other", shell("app")))
    restored: Any = shared.node.journal.wait_for_event(qos.CgroupRestored)
    assert restored.cgroup.endswith("/".join(mine))
    assert restored.changes == (qos.Change(file="cpu.shares", found="7", wanted="102"),)
    assert shared.says("cpu.shares", *mine) == 102
    shared.delete("kept", "other")


def test_what_is_nobodys_goes_with_whoever_is_in_it(shared: Shared) -> None:
    """A cgroup of a pod that is not known, left with a process in it."""
    left = [shared.folder(controller, "besteffort", "podleft") for controller in ("cpu", "memory", "freezer")]
    for folder in left:
        folder.mkdir(parents=True)
    child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    (left[1] / "cgroup.procs").write_text(str(child))
    shared.apply(a_pod("after", shell("app")))
    removed: Any = shared.node.journal.wait_for_event(qos.CgroupRemoved, killed=1)
    assert removed.cgroup.endswith("kubepods/besteffort/podleft")
    assert os.waitpid(child, 0)[1] == 9
    assert not any(folder.exists() for folder in left)
    shared.delete("after")


def test_somebody_elses_kubepods_is_left_alone(own_node: Node) -> None:
    top = own_node.engine.cgroup_root(own_node.name).lstrip("/")
    theirs = Path("/sys/fs/cgroup/cpu", top, "kubepods", "burstable")
    theirs.mkdir(parents=True)
    own_node.start()
    assert own_node.wait_for_end() == 1
    assert "made by somebody else, such as a kubelet: name another --cgroup-root" in own_node.log
    own_node.environ["CHRONOLET_CGROUP_ROOT"] += "-other"
    own_node.start()
    own_node.journal.wait_for_event(qos.NodeDescribed)
    other = theirs.parents[1].with_name(f"{own_node.name}-other")
    wait_until((other / "kubepods/besteffort").is_dir, "a tree of our own elsewhere")
    assert next(iter(theirs.iterdir())).is_file(), "nothing was made in theirs"


def test_more_than_there_is_cannot_be_reserved(own_node: Node) -> None:
    own_node.environ |= {"CHRONOLET_SYSTEM_RESERVED": "cpu=1001"}
    own_node.start()
    assert own_node.wait_for_end() == 1
    assert 'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 1001000' in own_node.log
