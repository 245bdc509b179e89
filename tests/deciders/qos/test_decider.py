"""Admission of pods and their cgroups."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronolet.qos import signals
from chronolet.qos.decider import DECIDER
from chronolet.rules.resources.cgroups import Cgroup, Values
from chronolet_schemas import pod, qos
from chronolet_schemas.envelope import Event
from chronolet_schemas.resources import ContainerNeeds, HostPort, PodNeeds
from tests.deciders.given import Scene, given
from tests.deciders.qos.nodes import need, node, requested, seen

SMALL, OTHER = need(), need(cpu=700)


def ref(uid: str) -> dict[str, Any]:
    return {"pod": f"default/{uid}", "uid": uid}


def admitted(uid: str, needs: PodNeeds = SMALL) -> qos.PodAdmitted:
    return qos.PodAdmitted(needs=needs, **ref(uid))


def ready(uid: str, parent: str = "") -> qos.CgroupReady:
    return qos.CgroupReady(parent=parent or f"/kubepods/burstable/pod{uid}", **ref(uid))


def described(**other: Any) -> Scene:
    return given(DECIDER, qos.NodeDescribed(node=node(**other)))


def with_pod(uid: str = "u1", needs: PodNeeds = SMALL) -> Scene:
    """Return the scene of a node on which one pod has its cgroup."""
    return given(DECIDER, qos.NodeDescribed(node=node()), admitted(uid, needs), ready(uid))


def test_only_the_node_is_inspected_before_it_is_known() -> None:
    scene = given(DECIDER)
    assert set(scene.effects) == {"node"}
    assert scene.due is None
    scene.when(seen()).then(qos.NodeDescribed(node=node()))
    assert set(scene.effects) == {"node", "tree"}
    scene.when(seen()).then()


def test_a_pod_is_admitted_and_its_cgroup_created() -> None:
    scene = described().when(requested("u1", SMALL)).then(admitted("u1"))
    tree: Any = scene.effects["tree"]
    assert [one.path for one in tree.tree][-1] == ("kubepods", "burstable", "podu1")
    assert (tree.revision, tree.root, tree.settled) == (2, ("kubepods",), frozenset())
    scene.when(requested("u1", SMALL)).then()
    scene.when(signals.TreeKept(revision=1)).then()
    scene.when(signals.TreeKept(revision=2)).then(ready("u1"))
    kept: Any = scene.effects["tree"]
    assert kept.intent == tree.intent
    assert kept.settled == {("kubepods", "burstable", "podu1")}


def test_a_repeated_request_is_answered_again() -> None:
    with_pod().when(requested("u1", SMALL)).then(ready("u1"))


def test_the_cgroup_path_depends_on_class_and_driver() -> None:
    scene = described(driver="systemd")
    scene.when(requested("a-b", need("Guaranteed"))).when(signals.TreeKept(revision=9))
    assert scene.only(qos.CgroupReady).parent == "kubepods-poda_b.slice"
    scene.when(requested("c", need("BestEffort"))).when(signals.TreeKept(revision=9))
    assert scene.only(qos.CgroupReady).parent == "kubepods-besteffort-podc.slice"


def test_an_early_request_is_answered_once_the_node_is_known() -> None:
    scene = given(DECIDER)
    scene.when(requested("u1", need(cpu=2500))).then(qos.PodAwaited(needs=need(cpu=2500), **ref("u1")))
    scene.when(requested("u1", need(cpu=2500))).then()
    scene.when(requested("u2", need(cpu=2500)))
    scene.when(requested("u3", need(cpu=2500), running=True))
    assert set(scene.effects) == {"node"}
    scene.when(seen())
    assert scene.kinds == ["NodeDescribed", "PodAdmitted", "PodRefused", "PodAdmitted"]
    assert set(scene.state.shares) == {"u1", "u3"}


def test_a_pod_that_does_not_fit_is_refused_with_the_kubelets_message() -> None:
    scene = with_pod(needs=need(cpu=2500)).when(requested("u2", need(cpu=501)))
    message = "Node didn't have enough resource: cpu, requested: 501, used: 2500, capacity: 3000"
    scene.then(qos.PodRefused(reason="OutOfcpu", message=message, **ref("u2")))
    assert set(scene.state.shares) == {"u1"}
    scene.when(requested("u2", need(cpu=500))).then(admitted("u2", need(cpu=500)))


def test_a_running_pod_is_not_refused() -> None:
    big = need(cpu=9000)
    described().when(requested("u1", big, running=True)).then(admitted("u1", big))


def test_a_pod_with_changed_needs_is_admitted_again() -> None:
    scene = with_pod().when(requested("u1", OTHER)).then(admitted("u1", OTHER))
    tree: Any = scene.effects["tree"]
    assert tree.tree[-1].values.cpu_shares == 716
    scene.when(signals.TreeKept(revision=tree.revision)).then(ready("u1"))
    scene.when(requested("u1", need(cpu=9000)))
    assert scene.kinds == ["PodRefused"]
    assert scene.state.shares["u1"].needs == OTHER, "it keeps its share until it ends"


@pytest.mark.parametrize("over", [pod.CgroupReleased(**ref("u1")), pod.PodEnded(**ref("u1"))])
def test_a_finished_pod_takes_no_resources(over: pod.PodEvent) -> None:
    scene = with_pod().when(over).then(qos.PodReleased(**ref("u1")))
    tree: Any = scene.effects["tree"]
    assert len(tree.tree) == 3
    assert tree.intent == "keep/3"
    scene.when(over).then()


def test_a_release_precedes_a_pending_creation() -> None:
    scene = described().when(requested("u1", SMALL)).when(pod.PodEnded(**ref("u1")))
    scene.when(signals.TreeKept(revision=2)).then()


def test_without_cgroups_no_pod_waits_for_one() -> None:
    scene = described(version=0, driver="", root=()).when(requested("u1", SMALL))
    scene.then(admitted("u1"), qos.CgroupReady(**ref("u1")))
    assert set(scene.effects) == {"node"}


def test_a_changed_root_moves_every_pods_cgroup() -> None:
    scene = with_pod().when(seen(root=("mine", "kubepods")))
    scene.when(signals.TreeKept(revision=3)).then(ready("u1", "/mine/kubepods/burstable/podu1"))
    scene.when(seen(version=0, driver="", root=()))
    assert scene.facts[1:] == (qos.CgroupReady(**ref("u1")),)
    scene.when(seen(max_pods=1, version=0, driver="", root=()))
    assert scene.kinds == ["NodeDescribed"]


def test_a_changed_node_description_with_the_same_cgroups() -> None:
    scene = given(DECIDER, qos.PodAwaited(needs=SMALL, **ref("u0")), qos.NodeDescribed(node=node()), admitted("u1"))
    scene.when(seen(max_pods=5))
    assert scene.kinds == ["NodeDescribed", "PodAdmitted"]


def test_restored_and_removed_cgroups_are_recorded() -> None:
    change = qos.Change(file="cpu.shares", found="7", wanted="512")
    kept = signals.TreeKept(
        revision=2,
        restored=[signals.Restored(path=("kubepods", "burstable", "podu1"), changes=(change,))],
        removed=[signals.Removed(path=("kubepods", "podx"), killed=2)],
    )
    with_pod().when(kept).then(
        qos.CgroupRestored(cgroup="kubepods/burstable/podu1", changes=(change,)),
        qos.CgroupRemoved(cgroup="kubepods/podx", killed=2),
    )


def test_a_failure_is_reported_once_and_its_pods_wait() -> None:
    scene = (
        described()
        .when(requested("u1", SMALL))
        .when(requested("u2", need("BestEffort")))
        .when(requested("u3", need("Guaranteed")))
    )
    above = signals.Failed(path=("kubepods", "burstable"), error="read-only")
    own = signals.Failed(path=("kubepods", "besteffort", "podu2"), error="no space")
    failing = signals.TreeKept(revision=9, failed=[above, own])
    scene.when(failing).then(
        qos.CgroupFailing(cgroup="kubepods/besteffort/podu2", error="no space"),
        qos.CgroupFailing(cgroup="kubepods/burstable", error="read-only"),
        ready("u3", "/kubepods/podu3"),
    )
    scene.then_kube_events(("FailedCreatePodContainer", "unable to ensure pod container exists: no space"))
    assert (scene.recorded[0].namespace, scene.recorded[0].name, scene.recorded[0].uid) == ("default", "u2", "u2")
    scene.when(failing).then()
    scene.when(signals.TreeKept(revision=9, failed=[signals.Failed(path=above.path, error="gone")])).then(
        qos.CgroupFailing(cgroup="kubepods/burstable", error="gone"),
        qos.CgroupWorking(cgroup="kubepods/besteffort/podu2"),
        ready("u2", "/kubepods/besteffort/podu2"),
    )
    scene.when(signals.TreeKept(revision=9)).then(qos.CgroupWorking(cgroup="kubepods/burstable"), ready("u1"))


def test_a_failure_of_a_node_cgroup_is_reported_for_the_node() -> None:
    scene = given(DECIDER).when(seen(name="n1", lost=("no pids",)))
    scene.then_kube_events(("FailedNodeAllocatableEnforcement", "no pids"))
    assert (scene.recorded[0].object_kind, scene.recorded[0].name) == ("Node", "n1")
    scene.when(seen(name="n1", lost=("no pids", "no cpu"))).then_kube_events(
        ("FailedNodeAllocatableEnforcement", "no cpu")
    )
    scene.when(signals.TreeKept(revision=2, failed=[signals.Failed(path=("kubepods",), error="denied")]))
    message = 'Failed to update Node Allocatable Limits "kubepods": denied'
    scene.then_kube_events(("FailedNodeAllocatableEnforcement", message))


def test_a_failed_removal_of_an_unowned_cgroup_is_not_a_pods_event() -> None:
    failed = signals.Failed(path=("kubepods", "podx"), error="busy")
    with_pod().when(signals.TreeKept(revision=2, failed=[failed])).then_kube_events()


# -- containers -------------------------------------------------------------------------------------------------------

MIB = 1 << 20
OF_APP = PodNeeds(
    qos_class="Burstable", containers={"app": ContainerNeeds(memory_request_bytes=MIB, memory_limit_bytes=2 * MIB)}
)
PAGED = PodNeeds(
    qos_class="Burstable",
    containers={"app": ContainerNeeds(memory_request_bytes=MIB, huge_pages={"hugepages-2Mi": 2 * MIB})},
)
MEMORY_QOS = {"version": 2, "memory_reservation": "TieredReservation", "memory_throttling_factor": "0.5"}


def began(container: str = "app", container_id: str = "c1", uid: str = "u1") -> pod.ContainerStarted:
    return pod.ContainerStarted(container=container, attempt=0, id=container_id, started_at=1, **ref(uid))


def kept(container: str = "app", container_id: str = "c1") -> qos.ContainerKept:
    return qos.ContainerKept(container=container, id=container_id, **ref("u1"))


def of_containers(scene: Scene) -> list[Cgroup]:
    tree: Any = scene.effects["tree"]
    return [one for one in tree.tree if one.is_containers]


def test_a_running_containers_values_beyond_the_runtimes_are_kept() -> None:
    scene = given(DECIDER, qos.NodeDescribed(node=node(**MEMORY_QOS)), admitted("u1", OF_APP), ready("u1"))
    before: Any = scene.effects["tree"]
    scene.when(began()).then(kept())
    own = Values(memory_low_bytes=MIB, memory_high_bytes=3 * MIB // 2)
    path = ("kubepods", "burstable", "podu1")
    assert of_containers(scene) == [Cgroup(path=(*path, "c1"), values=own, is_containers=True)]
    after: Any = scene.effects["tree"]
    assert after.intent != before.intent
    assert after.settled == {path}, "a value that was never written was not changed by hand"
    scene.when(began()).then()
    scene.when(began(container_id="c2")).then(kept(container_id="c2"))
    assert [one.path[-1] for one in of_containers(scene)] == ["c2"]
    scene.when(requested("u1", SMALL)).when(signals.TreeKept(revision=9))
    assert [one.path[-1] for one in of_containers(scene)] == ["c2"], "its needs changed while it runs"
    scene.when(pod.CgroupReleased(**ref("u1")))
    assert of_containers(scene) == []


@pytest.mark.parametrize(
    ("of_node", "needs", "kept_by_us"),
    [
        ({}, OF_APP, False),
        ({"version": 2}, OF_APP, False),
        ({**MEMORY_QOS, "version": 1}, OF_APP, False),
        ({"version": 1}, PAGED, True),
        ({"version": 2, "memory_reservation": "TieredReservation"}, OF_APP, True),
    ],
)
def test_a_container_without_such_values_has_no_cgroup_in_the_tree(
    of_node: dict[str, Any], needs: PodNeeds, kept_by_us: bool
) -> None:
    scene = given(DECIDER, qos.NodeDescribed(node=node(**of_node)), admitted("u1", needs), ready("u1"))
    scene.when(began()).then(*([kept()] if kept_by_us else []))
    assert len(of_containers(scene)) == kept_by_us


def test_only_huge_page_limits_are_kept_on_cgroup_v1() -> None:
    scene = given(DECIDER, qos.NodeDescribed(node=node(**{**MEMORY_QOS, "version": 1})), admitted("u1", PAGED))
    assert of_containers(scene.when(began()))[0].values == Values(huge_pages=((2 * MIB, 2 * MIB),))


def test_a_container_that_starts_before_the_node_is_known() -> None:
    scene = given(DECIDER, qos.PodAwaited(needs=OF_APP, running=True, **ref("u1")))
    scene.when(began()).then(kept())
    scene.when(seen(**MEMORY_QOS))
    assert [one.path[-1] for one in of_containers(scene)] == ["c1"]


def test_events_of_unknown_pods_change_nothing() -> None:
    given(DECIDER).when(began()).then()
    events = (
        kept(),
        qos.CgroupReady(**ref("u1")),
        qos.CgroupWorking(cgroup="k"),
        qos.PodRefused(reason="OutOfpods", message="", **ref("u1")),
    )
    assert given(DECIDER, *events).state == DECIDER.initial
    assert given(DECIDER, qos.PodReleased(**ref("u1"))).state.shares == DECIDER.initial.shares
    assert given(DECIDER).when(signals.TreeKept(revision=0)).facts == ()


def test_events_of_a_share_before_the_node_is_known() -> None:
    scene = given(DECIDER, qos.PodAwaited(needs=SMALL, **ref("u1")))
    scene.when(signals.TreeKept(revision=0)).then()
    scene.when(pod.PodEnded(**ref("u1"))).then(qos.PodReleased(**ref("u1")))


# -- ports on the node -----------------------------------------------------------------------------------------------
HTTP = HostPort(port=80)


def on_port(*ports: HostPort) -> PodNeeds:
    return replace(SMALL, host_ports=ports or (HTTP,))


def awaits(uid: str, holder: str, *, asked_at: int, needs: PodNeeds | None = None, port: HostPort = HTTP) -> Event:
    message = f"host port {port} is held by pod default/{holder}"
    return qos.HostPortsAwaited(
        needs=needs or on_port(), holder=f"default/{holder}", message=message, asked_at=asked_at, **ref(uid)
    )


def test_pods_wait_for_a_held_port_in_order_of_their_requests() -> None:
    scene = with_pod(needs=on_port())
    at = scene.at = 1000
    scene.when(requested("u9", on_port())).then(awaits("u9", "u1", asked_at=at))
    assert scene.state.shares["u9"].phase == "waiting"
    scene.when(requested("u2", on_port()), at=at + 5).then(awaits("u2", "u1", asked_at=at + 5))
    # A repeated request is answered again and keeps its place in the queue; a waiting pod holds nothing.
    scene.when(requested("u9", on_port()), at=at + 9).then(awaits("u9", "u1", asked_at=at))
    other = on_port(HostPort(port=81))
    scene.when(requested("u3", other)).then(admitted("u3", other))
    released = pod.CgroupReleased(**ref("u1"))
    scene.when(released).then(
        qos.PodReleased(**ref("u1")), admitted("u9", on_port()), awaits("u2", "u9", asked_at=at + 5)
    )
    scene.when(pod.PodEnded(**ref("u3"))).then(qos.PodReleased(**ref("u3")))
    scene.when(pod.PodEnded(**ref("u9"))).then(qos.PodReleased(**ref("u9")), admitted("u2", on_port()))


def test_without_waiting_a_pod_whose_port_is_held_is_rejected_with_the_kubelets_message() -> None:
    waiting = node(wait_for_host_ports=False)
    scene = given(DECIDER, qos.NodeDescribed(node=waiting), admitted("u1", on_port()), ready("u1"))
    refused = qos.PodRefused(reason="NodePorts", message="Predicate NodePorts failed", **ref("u2"))
    scene.when(requested("u2", on_port())).then(refused)
    assert set(scene.state.shares) == {"u1"}
    # A waiting pod is rejected when the setting changes; a running one is not checked.
    scene = with_pod(needs=on_port())
    scene.at = 1000
    scene.when(requested("u2", on_port()))
    scene.when(signals.NodeSeen(node=waiting)).then(qos.NodeDescribed(node=waiting), refused)
    scene.when(requested("u3", on_port(), running=True)).then(admitted("u3", on_port()))


def test_a_pod_whose_changed_spec_needs_a_held_port_releases_its_share() -> None:
    scene = with_pod(needs=on_port())
    scene.at = 1000
    scene.when(requested("u2", SMALL)).then(admitted("u2"))
    revision = scene.state.revision
    scene.when(requested("u2", on_port())).then(awaits("u2", "u1", asked_at=scene.at))
    assert (scene.state.shares["u2"].phase, scene.state.revision) == ("waiting", revision + 1)
    scene.when(requested("u2", SMALL)).then(admitted("u2"))
    assert scene.state.shares["u2"].asked_at == 0


def test_a_waiting_pod_may_end_before_the_node_is_known() -> None:
    scene = given(DECIDER).when(requested("u1", on_port())).when(requested("u2", on_port()))
    scene.when(pod.PodEnded(**ref("u2"))).then(qos.PodReleased(**ref("u2")))
    scene.when(requested("u3", on_port())).when(seen())
    assert scene.kinds == ["NodeDescribed", "PodAdmitted", "HostPortsAwaited"]
