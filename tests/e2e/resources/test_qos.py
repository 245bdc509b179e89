"""QoS with the machine's real cgroups: limits and weights, CPU time by requests, memory limits, pods that do not fit.

The tests use the cgroup version of this machine; tests/setup/cgroup2_machine has v2 with systemd slices.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from chronolet_schemas import kube_events, pod, qos
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.resources import cgroup_files
from tests.e2e.resources.cgroup_files import value
from tests.e2e.resources.qos_node import QosNode, parent_path, requests_and_limits
from tests.support.docker.engine import IS_V2, PrivateDocker
from tests.support.machine.frozen import stopped
from tests.support.redis.server import private_redis
from tests.support.scratch import wait_until

MIB, GIB = 1 << 20, 1 << 30
SPIN = "while :; do :; done"
HOG = "x=a; while :; do x=$x$x; done"
BUSY_NANOSECONDS = 2_000_000_000
READING_NANOSECONDS = BUSY_NANOSECONDS // 200
"""Maximum CPU time that the pods may use while their cgroups are read; if they use more, the values are read again."""
WEIGHTS = {3072: 118, 2048: 79, 1024: 39, 102: 4, 2: 1}
"""cgroup v2 weights by v1 shares. The lowest weight is 1 of 10,000, the lowest shares are 2 of 262,144."""
ALMOST_NOTHING = 0.02 if IS_V2 else 0.01


def weight_of(shares: int) -> int:
    """Return the weight that this machine's kernel has for v1 shares."""
    return WEIGHTS[shares] if IS_V2 else shares


@pytest.fixture(scope="module")
def qos_node(docker_engine: PrivateDocker) -> Iterator[QosNode]:
    with private_redis() as server:
        node = Node(docker_engine, server.url, "qos", server.folder / "agent")
        node.environ |= {
            "CHRONOLET_NODE_CAPACITY": "cpu=3,memory=8Gi",
            "CHRONOLET_QOS_RESERVED": "memory=100%",
            "CHRONOLET_MAX_PODS": "4",
        }
        try:
            node.start()
            yield QosNode(node)
        finally:
            node.close()


def test_weights_and_limits_of_three_pods(qos_node: QosNode) -> None:
    """Check the kernel's values for three pods on three processors and 8 GiB."""
    one_gib = ("1", "1Gi")
    qos_node.apply(
        a_pod("gold", shell("c3", resources=requests_and_limits(*one_gib, one_gib))),
        a_pod(
            "silver",
            shell("c1", resources=requests_and_limits(*one_gib, one_gib)),
            shell("c2", resources=requests_and_limits(*one_gib, ("2", "2Gi"))),
        ),
        a_pod("rest", shell("c4")),
    )
    qos_node.node.wait_until_running("gold", "silver", "rest")
    gold, silver, rest = qos_node.of("gold"), qos_node.of("silver"), qos_node.of("rest")
    everybody = (qos_node.all, qos_node.burstable, qos_node.best_effort, gold, silver, rest)
    weights = list(map(weight_of, (3072, 2048, 2, 1024, 2048, 2)))
    wait_until(lambda: [value("shares", one) for one in everybody] == weights, f"{weights}")
    wait_until(lambda: value("memory", qos_node.best_effort) == 5 * GIB, "the memory that is reserved for other pods")
    for name, container, of in (("gold", "c3", gold), ("silver", "c1", silver), ("silver", "c2", silver)):
        beneath = cgroup_files.of_container(qos_node.node.running(name)[container]["Id"])
        assert value("shares", of, beneath) == weight_of(1024), container
    assert value("memory", qos_node.all) == 8 * GIB
    assert value("memory", qos_node.burstable) == 7 * GIB
    assert value("memory", qos_node.best_effort) == 5 * GIB
    assert [value("memory", one) for one in (gold, silver)] == [GIB, 3 * GIB]
    assert [value("quota", one) for one in (gold, silver, rest)] == [100_000, 300_000, -1]
    found = [cgroup_files.folder(one).parent for one in (gold, silver, rest)]
    assert found == [cgroup_files.folder(one) for one in (qos_node.all, qos_node.burstable, qos_node.best_effort)]
    assert qos_node.uid("gold").replace("-", "_") in gold.replace("-", "_")

    output = qos_node.node.chronolet("get", "pods", "-o", "wide").out
    assert [line.split()[-1] for line in output.splitlines()[1:]] == ["Guaranteed", "BestEffort", "Burstable"]
    assert "QoS Class:                   Burstable" in qos_node.node.chronolet("describe", "pod", "silver").out
    rows = [line.split() for line in qos_node.node.chronolet("get", "cgroups").out.splitlines()]
    weight = weight_of(3072)
    assert ["kubepods", f"{weight}/{weight}", "max/max", f"{8 * GIB}/{8 * GIB}"] == rows[1][:4]
    assert len(rows) == 7
    assert all(cell.split("/")[0] == cell.split("/")[1] for row in rows[1:] for cell in row[-4:])
    qos_node.delete("gold", "silver", "rest")
    wait_until(lambda: value("shares", qos_node.burstable) == weight_of(2), "the weight without removed pods")
    wait_until(lambda: value("memory", qos_node.best_effort) == 8 * GIB, "the memory without removed pods")
    wait_until(lambda: remaining_pod_cgroups(qos_node) == [], f"the removal of {remaining_pod_cgroups(qos_node)}")


def remaining_pod_cgroups(qos_node: QosNode) -> list[str]:
    """Return the folder names of the node's pod cgroups in all hierarchies. Each is removed right after its pod."""
    tops = [cgroup_files.folder(qos_node.all, controller) for controller in cgroup_files.CONTROLLERS]
    names = [name for top in tops for _, folders, _ in os.walk(top) for name in folders]
    return [name for name in names if re.search("pod[0-9a-f]", name)]


def test_cpu_time_is_shared_by_requests(qos_node: QosNode) -> None:
    """Two pods share one processor 1500 to 500, and a pod without a request gets almost nothing."""
    qos_node.apply(
        a_pod("much", shell("app", SPIN, resources={"requests": {"cpu": "1500m"}})),
        a_pod("little", shell("app", SPIN, resources={"requests": {"cpu": "500m"}})),
        a_pod("none", shell("app", SPIN)),
    )
    names = ("much", "little", "none")
    qos_node.node.wait_until_running(*names)
    last = max(os.sched_getaffinity(0))
    for name in names:
        os.sched_setaffinity(qos_node.node.running(name)["app"]["State"]["Pid"], {last})
    before = used(qos_node, names)

    def since() -> list[int]:
        return [now - began for now, began in zip(used(qos_node, names), before, strict=True)]

    wait_until(lambda: sum(since()) > BUSY_NANOSECONDS, "CPU time used by the pods", 60)
    much, little, none = since()
    assert abs(much / little - 3) < 0.3, (much, little, none)
    assert none < ALMOST_NOTHING * (much + little), (much, little, none)
    qos_node.delete(*names)


def used(qos_node: QosNode, names: Sequence[str]) -> list[int]:
    """Return the CPU nanoseconds used by each pod at one moment; if reading takes too long, read the values again."""
    cgroups = [qos_node.of(name) for name in names]
    first, second = ([value("used", one) for one in cgroups] for _ in range(2))
    while sum(second) - sum(first) > READING_NANOSECONDS:
        first, second = second, [value("used", one) for one in cgroups]
    return second


@pytest.mark.parametrize("scope", ["container", "child", "pod"])
def test_a_container_above_its_memory_limit_is_killed_and_reported(qos_node: QosNode, scope: str) -> None:
    """This also holds if a child process is killed and the container then exits, and if the limit is the pod's."""
    script = f"sh -c '{HOG}'; exit 3" if scope == "child" else HOG
    limit = {"limits": {"cpu": "1", "memory": "32Mi"}}
    name = f"hog-{scope}"
    one = shell("app", script, **({} if scope == "pod" else {"resources": limit}))
    more = {"resources": {"limits": {"memory": "32Mi"}}} if scope == "pod" else {}
    qos_node.apply(a_pod(name, one, restartPolicy="Never", **more))
    if scope == "pod":
        qos_node.node.journal.wait_for_event(pod.SpecAccepted, pod=f"default/{name}")
    died: Any = qos_node.node.journal.wait_for_event(pod.ContainerExited, pod=f"default/{name}", container="app")
    qos_node.node.wait_for_status(name, "OOMKilled")
    assert died.exit_code == (3 if scope == "child" else 137)
    status: Any = qos_node.node.journal.status(f"default/{name}")
    assert status.container_statuses[0].state.terminated.reason == "OOMKilled"
    assert "OOMKilled" in qos_node.node.chronolet("get", "pods").line(name)
    qos_node.delete(name)


def test_a_pod_that_does_not_fit_is_rejected_in_the_kubelets_words(qos_node: QosNode) -> None:
    message = "Node didn't have enough resource: cpu, requested: 3001, used: 0, capacity: 3000"
    qos_node.apply(a_pod("big", shell("app", resources={"requests": {"cpu": "3001m"}})))
    qos_node.node.wait_for_status_column("big", "OutOfcpu")
    status: Any = qos_node.node.journal.status("default/big")
    assert (status.phase, status.reason, status.message) == ("Failed", "OutOfcpu", f"Pod was rejected: {message}")
    recorded: Any = qos_node.node.journal.wait_for_event(kube_events.Recorded, reason="OutOfcpu")
    assert (recorded.severity, recorded.message) == ("Warning", message)
    assert qos_node.node.running("big") == {}
    qos_node.apply(a_pod("fat", shell("app", resources={"requests": {"memory": "9Gi"}})))
    qos_node.node.wait_for_status_column("fat", "OutOfmemory")
    qos_node.apply(*(a_pod(f"n{number}", shell("app")) for number in range(5)))
    qos_node.node.journal.wait_for(
        "four pods that run and one that does not",
        lambda: (
            sorted(qos_node.node.status_column(f"n{number}") for number in range(5)) == ["OutOfpods", *["Running"] * 4]
        ),
    )
    qos_node.delete("big", "fat", *(f"n{number}" for number in range(5)))


def test_a_changed_cgroup_is_restored_and_reported(qos_node: QosNode) -> None:
    """The cgroup is checked once a minute, and immediately when a pod has ended."""
    qos_node.apply(a_pod("kept", shell("app", resources={"requests": {"cpu": "100m"}})), a_pod("other", shell("app")))
    qos_node.node.wait_until_running("kept", "other")
    mine = qos_node.of("kept")
    file = cgroup_files.file_of("shares")
    (cgroup_files.folder(mine, "cpu") / file).write_text("7")
    qos_node.delete("other")
    restored: Any = qos_node.node.journal.wait_for_event(qos.CgroupRestored)
    assert restored.cgroup.endswith(f"kubepods/burstable/pod{qos_node.uid('kept')}")
    assert restored.changes == (qos.Change(file=file, found="7", wanted=str(weight_of(102))),)
    assert value("shares", mine) == weight_of(102)
    qos_node.delete("kept")


def test_an_unknown_pods_cgroup_is_removed_with_its_processes(qos_node: QosNode) -> None:
    """The cgroup belongs to an unknown pod and has a process in it."""
    qos_node.apply(a_pod("after", shell("app")))
    qos_node.node.wait_until_running("after")
    name = cgroup_files.named(*qos_node.parent_path, "kubepods", "besteffort", "podleft")
    left = [cgroup_files.folder(name, controller) for controller in cgroup_files.CONTROLLERS]
    child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "3600")
    with stopped([qos_node.node.pid]):  # the agent may be about to check, and would find no process in the cgroup
        for folder in left:
            folder.mkdir(parents=True)
        (left[-1] / "cgroup.procs").write_text(str(child))
    qos_node.delete("after")
    removed: Any = qos_node.node.journal.wait_for_event(qos.CgroupRemoved, killed=1)
    assert removed.cgroup.endswith("kubepods/besteffort/podleft")
    assert os.waitpid(child, 0)[1] == 9
    assert not any(folder.exists() for folder in left)


def test_a_foreign_kubepods_is_not_touched(own_node: Node) -> None:
    *parts, last = parent_path(own_node)
    foreign = cgroup_files.folder(cgroup_files.named(*parts, last, "kubepods", "burstable"), "cpu")
    foreign.mkdir(parents=True)
    own_node.start()
    assert own_node.wait_for_end() == 1
    assert "created by another program, such as a kubelet: choose another --cgroup-root" in own_node.log
    own_node.environ["CHRONOLET_CGROUP_ROOT"] += "-other"
    own_node.start()
    own_node.journal.wait_for_event(qos.NodeDescribed)
    own = cgroup_files.folder(cgroup_files.named(*parts, f"{last}-other", "kubepods", "besteffort"))
    wait_until(own.is_dir, "the agent's own tree")
    assert not [one for one in foreign.iterdir() if one.is_dir()], "the foreign tree was changed"


def wrapper_for_mounts(command: str) -> list[str]:
    """Return a wrapper that runs `command` for each cgroup mount (its path is $at) in a separate mount namespace."""
    look = f"while read -r _ at kind _; do case $kind in cgroup*) {command} ;; esac; done < /proc/mounts"
    return ["unshare", "--mount", "sh", "-ec", f'{look}; exec "$@"', "sh"]


def test_without_writable_cgroups_pods_run_without_limits_and_that_is_reported(own_node: Node) -> None:
    own_node.environ["CHRONOLET_NODE_CAPACITY"] = "cpu=3,memory=8Gi"
    own_node.start(wrapper=wrapper_for_mounts("mount -o remount,bind,ro $at"))
    found: Any = own_node.journal.wait_for_event(qos.NodeDescribed)
    assert (found.node.version, found.node.driver) == (0, "")
    message = found.node.lost[0]
    assert message.endswith(" is mounted read-only: pods have no cgroups of their own")
    own_node.journal.wait_for_event(
        kube_events.Recorded, reason="FailedNodeAllocatableEnforcement", severity="Warning", message=message
    )
    big = a_pod("big", shell("app", resources={"requests": {"cpu": "3001m"}}))
    own_node.write("pods.yaml", a_pod("small", shell("app", resources={"requests": {"cpu": "100m"}})), big)
    own_node.wait_until_running("small")
    own_node.wait_for_status_column("big", "OutOfcpu")
    assert own_node.chronolet("get", "cgroups").err == "No resources found.\n"


if not IS_V2:  # v2 has a single mount

    def test_a_missing_controller_is_reported_and_not_used(own_node: Node) -> None:
        own_node.start(wrapper=wrapper_for_mounts("case $at in */pids) umount $at ;; esac"))
        found: Any = own_node.journal.wait_for_event(qos.NodeDescribed)
        assert "controller pids is missing: no limits of the number of processes" in found.node.lost
        own_node.write("pod.yaml", a_pod("small", shell("app", resources={"requests": {"cpu": "100m"}})))
        own_node.wait_until_running("small")
        ready: Any = own_node.journal.wait_for_event(qos.CgroupReady)
        assert value("shares", ready.parent) == weight_of(102)


def test_more_than_the_capacity_cannot_be_reserved(own_node: Node) -> None:
    own_node.environ |= {"CHRONOLET_SYSTEM_RESERVED": "cpu=1001"}
    own_node.start()
    assert own_node.wait_for_end() == 1
    assert 'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 1001000' in own_node.log
