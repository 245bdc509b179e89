"""QoS on the machine's own cgroups: the article's numbers, processor time by shares, memory's end, who does not fit.

On whichever version this machine has; tests/setup/cgroup2_machine has v2 with systemd's slices.
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
from tests.e2e.resources.cgroup_files import says
from tests.e2e.resources.qos_node import Shared, above, asking
from tests.support.docker import IS_V2, PrivateDocker
from tests.support.frozen import stopped
from tests.support.redis import private_redis
from tests.support.scratch import wait_until

MIB, GIB = 1 << 20, 1 << 30
SPIN = "while :; do :; done"
HOG = "x=a; while :; do x=$x$x; done"
BUSY_NANOSECONDS = 2_000_000_000
AT_ONCE_NANOSECONDS = BUSY_NANOSECONDS // 200
"""So much may be used between the first and the last look at several cgroups."""
WEIGHTS = {3072: 118, 2048: 79, 1024: 39, 102: 4, 2: 1}
"""v2's of v1's shares. The least is one of ten thousand there and not two of a quarter of a million."""
NEXT_TO_NOTHING = 0.02 if IS_V2 else 0.01


def weighing(shares: int) -> int:
    """What this machine's kernel says of so many shares."""
    return WEIGHTS[shares] if IS_V2 else shares


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


def test_the_seeds_example(shared: Shared) -> None:
    """Three pods on three processors and 8 GiB: the numbers of the article, in the kernel."""
    whole = ("1", "1Gi")
    shared.apply(
        a_pod("gold", shell("c3", resources=asking(*whole, whole))),
        a_pod(
            "silver",
            shell("c1", resources=asking(*whole, whole)),
            shell("c2", resources=asking(*whole, ("2", "2Gi"))),
        ),
        a_pod("rest", shell("c4")),
    )
    shared.node.wait_until_running("gold", "silver", "rest")
    gold, silver, rest = shared.of("gold"), shared.of("silver"), shared.of("rest")
    everybody = (shared.all, shared.burstable, shared.best_effort, gold, silver, rest)
    weights = list(map(weighing, (3072, 2048, 2, 1024, 2048, 2)))
    wait_until(lambda: [says("shares", one) for one in everybody] == weights, f"{weights}")
    wait_until(lambda: says("memory", shared.best_effort) == 5 * GIB, "what is reserved for all others")
    for name, container, of in (("gold", "c3", gold), ("silver", "c1", silver), ("silver", "c2", silver)):
        beneath = cgroup_files.of_container(shared.node.running(name)[container]["Id"])
        assert says("shares", of, beneath) == weighing(1024), container
    assert says("memory", shared.all) == 8 * GIB
    assert says("memory", shared.burstable) == 7 * GIB
    assert says("memory", shared.best_effort) == 5 * GIB
    assert [says("memory", one) for one in (gold, silver)] == [GIB, 3 * GIB]
    assert [says("quota", one) for one in (gold, silver, rest)] == [100_000, 300_000, -1]
    found = [cgroup_files.folder(one).parent for one in (gold, silver, rest)]
    assert found == [cgroup_files.folder(one) for one in (shared.all, shared.burstable, shared.best_effort)]
    assert shared.uid("gold").replace("-", "_") in gold.replace("-", "_")

    said = shared.node.chronolet("get", "pods", "-o", "wide").out
    assert [line.split()[-1] for line in said.splitlines()[1:]] == ["Guaranteed", "BestEffort", "Burstable"]
    assert "QoS Class:                   Burstable" in shared.node.chronolet("describe", "pod", "silver").out
    rows = [line.split() for line in shared.node.chronolet("get", "cgroups").out.splitlines()]
    weight = weighing(3072)
    assert ["kubepods", f"{weight}/{weight}", "max/max", f"{8 * GIB}/{8 * GIB}"] == rows[1][:4]
    assert len(rows) == 7
    assert all(cell.split("/")[0] == cell.split("/")[1] for row in rows[1:] for cell in row[-4:])
    shared.delete("gold", "silver", "rest")
    wait_until(lambda: says("shares", shared.burstable) == weighing(2), "no share of pods that are gone")
    wait_until(lambda: says("memory", shared.best_effort) == 8 * GIB, "no memory of pods that are gone")
    wait_until(lambda: left_of_pods(shared) == [], f"the end of {left_of_pods(shared)}")


def left_of_pods(shared: Shared) -> list[str]:
    """In any hierarchy: they go right after their pods."""
    tops = [cgroup_files.folder(shared.all, controller) for controller in cgroup_files.CONTROLLERS]
    names = [name for top in tops for _, folders, _ in os.walk(top) for name in folders]
    return [name for name in names if re.search("pod[0-9a-f]", name)]


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
    before = used(shared, names)

    def since() -> list[int]:
        return [now - began for now, began in zip(used(shared, names), before, strict=True)]

    wait_until(lambda: sum(since()) > BUSY_NANOSECONDS, "pods that are busy", 60)
    much, little, none = since()
    assert abs(much / little - 3) < 0.3, (much, little, none)
    assert none < NEXT_TO_NOTHING * (much + little), (much, little, none)
    shared.delete(*names)


def used(shared: Shared, names: Sequence[str]) -> list[int]:
    """Nanoseconds of processor time that each pod has had, at one moment: who stood still while reading reads again."""
    cgroups = [shared.of(name) for name in names]
    first, second = ([says("used", one) for one in cgroups] for _ in range(2))
    while sum(second) - sum(first) > AT_ONCE_NANOSECONDS:
        first, second = second, [says("used", one) for one in cgroups]
    return second


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
    shared.node.wait_for_status_column("big", "OutOfcpu")
    status: Any = shared.node.journal.status("default/big")
    assert (status.phase, status.reason, status.message) == ("Failed", "OutOfcpu", f"Pod was rejected: {said}")
    told: Any = shared.node.journal.wait_for_event(kube_events.Recorded, reason="OutOfcpu")
    assert (told.severity, told.message) == ("Warning", said)
    assert shared.node.running("big") == {}
    shared.apply(a_pod("fat", shell("app", resources={"requests": {"memory": "9Gi"}})))
    shared.node.wait_for_status_column("fat", "OutOfmemory")
    shared.apply(*(a_pod(f"n{number}", shell("app")) for number in range(5)))
    shared.node.journal.wait_for(
        "four pods that run and one that does not",
        lambda: (
            sorted(shared.node.status_column(f"n{number}") for number in range(5)) == ["OutOfpods", *["Running"] * 4]
        ),
    )
    shared.delete("big", "fat", *(f"n{number}" for number in range(5)))


def test_what_somebody_changes_is_put_right_and_said(shared: Shared) -> None:
    """Looked at once a minute; and at once whenever a pod has gone."""
    shared.apply(a_pod("kept", shell("app", resources={"requests": {"cpu": "100m"}})), a_pod("other", shell("app")))
    shared.node.wait_until_running("kept", "other")
    mine = shared.of("kept")
    file = cgroup_files.file_of("shares")
    (cgroup_files.folder(mine, "cpu") / file).write_text("7")
    shared.delete("other")
    restored: Any = shared.node.journal.wait_for_event(qos.CgroupRestored)
    assert restored.cgroup.endswith(f"kubepods/burstable/pod{shared.uid('kept')}")
    assert restored.changes == (qos.Change(file=file, found="7", wanted=str(weighing(102))),)
    assert says("shares", mine) == weighing(102)
    shared.delete("kept")


def test_what_is_nobodys_goes_with_whoever_is_in_it(shared: Shared) -> None:
    """A cgroup of a pod that is not known, left with a process in it."""
    shared.apply(a_pod("after", shell("app")))
    shared.node.wait_until_running("after")
    name = cgroup_files.named(*shared.above, "kubepods", "besteffort", "podleft")
    left = [cgroup_files.folder(name, controller) for controller in cgroup_files.CONTROLLERS]
    child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "3600")
    with stopped([shared.node.pid]):  # it may be about to look, and would find nobody in it
        for folder in left:
            folder.mkdir(parents=True)
        (left[-1] / "cgroup.procs").write_text(str(child))
    shared.delete("after")
    removed: Any = shared.node.journal.wait_for_event(qos.CgroupRemoved, killed=1)
    assert removed.cgroup.endswith("kubepods/besteffort/podleft")
    assert os.waitpid(child, 0)[1] == 9
    assert not any(folder.exists() for folder in left)


def test_somebody_elses_kubepods_is_left_alone(own_node: Node) -> None:
    *parts, last = above(own_node)
    theirs = cgroup_files.folder(cgroup_files.named(*parts, last, "kubepods", "burstable"), "cpu")
    theirs.mkdir(parents=True)
    own_node.start()
    assert own_node.wait_for_end() == 1
    assert "created by another program, such as a kubelet: choose another --cgroup-root" in own_node.log
    own_node.environ["CHRONOLET_CGROUP_ROOT"] += "-other"
    own_node.start()
    own_node.journal.wait_for_event(qos.NodeDescribed)
    ours = cgroup_files.folder(cgroup_files.named(*parts, f"{last}-other", "kubepods", "besteffort"))
    wait_until(ours.is_dir, "a tree of our own elsewhere")
    assert next(iter(theirs.iterdir())).is_file(), "nothing was made in theirs"


def without(command: str) -> list[str]:
    """Surroundings in which this was done to the mounts of cgroups, by their places and kinds."""
    look = f"while read -r _ at kind _; do case $kind in cgroup*) {command} ;; esac; done < /proc/mounts"
    return ["unshare", "--mount", "sh", "-ec", f'{look}; exec "$@"', "sh"]


def test_where_no_cgroup_can_be_written_pods_run_without_and_that_is_said(own_node: Node) -> None:
    own_node.environ["CHRONOLET_NODE_CAPACITY"] = "cpu=3,memory=8Gi"
    own_node.start(wrapper=without("mount -o remount,bind,ro $at"))
    found: Any = own_node.journal.wait_for_event(qos.NodeDescribed)
    assert (found.node.version, found.node.driver) == (0, "")
    said = found.node.lost[0]
    assert said.endswith(" is mounted read-only: pods have no cgroups of their own")
    own_node.journal.wait_for_event(
        kube_events.Recorded, reason="FailedNodeAllocatableEnforcement", severity="Warning", message=said
    )
    big = a_pod("big", shell("app", resources={"requests": {"cpu": "3001m"}}))
    own_node.write("pods.yaml", a_pod("small", shell("app", resources={"requests": {"cpu": "100m"}})), big)
    own_node.wait_until_running("small")
    own_node.wait_for_status_column("big", "OutOfcpu")
    assert own_node.chronolet("get", "cgroups").err == "No resources found.\n"


if not IS_V2:  # where there is one mount, none can be missing

    def test_a_controller_that_is_missing_is_said_and_done_without(own_node: Node) -> None:
        own_node.start(wrapper=without("case $at in */pids) umount $at ;; esac"))
        found: Any = own_node.journal.wait_for_event(qos.NodeDescribed)
        assert "controller pids is missing: no limits of the number of processes" in found.node.lost
        own_node.write("pod.yaml", a_pod("small", shell("app", resources={"requests": {"cpu": "100m"}})))
        own_node.wait_until_running("small")
        ready: Any = own_node.journal.wait_for_event(qos.CgroupReady)
        assert says("shares", ready.parent) == weighing(102)


def test_more_than_there_is_cannot_be_reserved(own_node: Node) -> None:
    own_node.environ |= {"CHRONOLET_SYSTEM_RESERVED": "cpu=1001"}
    own_node.start()
    assert own_node.wait_for_end() == 1
    assert 'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 1001000' in own_node.log
