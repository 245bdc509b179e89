"""Devices, ports, init containers and earlier pods as the cause of a slow start; pods that do not start."""

from __future__ import annotations

from typing import Any

from chronolet_schemas import manifests, pod
from chronolet_schemas.resources import PodNeeds
from tests.cli.support.pod_start import DEVICES, FIRST, IMAGE, Started
from tests.cli.support.written_node import NOON, manifest
from tests.history.culprits.lines import ABOUT, first_line


def test_devices_without_a_plugin(start: Started) -> None:
    start.after(2, pod.DevicesRequested(**DEVICES, role="app", resources={"a/b": 1}, requested_at=NOON))
    start.after(3, pod.DevicesAwaited(**DEVICES, reason="r", message="no plugin of a/b", said_at=NOON))
    start.node.now += 60_000
    assert start.traced() == [
        (
            "default/web has been starting for 60.003 s, 60.003 s of it (100 %) getting devices for container app: "
            "no plugin of a/b"
        ),
        "  +   0.000 s    60.003 s  100 %  getting devices for container app, in progress  (no plugin of a/b)",
    ]


def test_a_host_port_of_another_pod(start: Started) -> None:
    start.after(2, pod.CgroupRequested(**ABOUT, needs=PodNeeds(qos_class="BestEffort"), requested_at=NOON))
    start.after(3, pod.HostPortsAwaited(**ABOUT, holder="default/old", message="port 80 is default/old's"))
    start.node.now += 60_000
    assert first_line(start).endswith("getting its share of the node: port 80 is default/old's")


def test_an_init_container_that_takes_long() -> None:
    start = Started(initContainers=[{"name": "init", "image": IMAGE}])
    start.sandbox()
    start.image(container="init")
    start.container(container="init")
    ended = {"exit_code": 0, "reason": "Completed", "started_at": NOON, "finished_at": NOON}
    start.after(30_000, pod.ContainerExited(**{**FIRST, "container": "init"}, id="i", **ended))
    start.image()
    start.container()
    assert first_line(start) == (
        "default/web took 30.412 s to start, 30.000 s of it (99 %) running init container init"
    )


def test_a_start_without_a_step(start: Started) -> None:
    start.node.now += 5_000
    assert start.traced() == ["default/web: no step of its start has begun for 5.000 s"]


def test_a_start_without_progress(start: Started) -> None:
    start.sandbox()
    start.node.now += 50_000
    assert first_line(start) == (
        "default/web has been starting for 50.200 s, 50.000 s of it (100 %) without progress for container app"
    )


def test_a_start_without_an_agent() -> None:
    start = Started()
    start.node.store.renew("p", "manifests 127.0.0.1:10255", 24 * 3_600_000)
    start.node.spans = {"manifests 127.0.0.1:10255": []}
    start.node.now += 5_000
    assert first_line(start) == (
        "default/web: no step of its start has begun for 5.000 s; no agent of the node runs pods now: "
        "start it with `chronolet run`"
    )


def applied(name: str = "later") -> manifests.PodApplied:
    return manifests.PodApplied(pod=f"default/{name}", uid="l", source="apply", digest="d", manifest=manifest(name))


def test_an_applied_pod_that_is_not_accepted_yet(start: Started) -> None:
    start.node.write("manifests/node-1", applied())
    start.node.now += 5_000
    result = start.node.run("trace", "later")
    assert result.output == "default/later: no step of its start has begun for 5.000 s\n"


def test_an_applied_pod_that_was_withdrawn(start: Started) -> None:
    start.node.write("manifests/node-1", applied())
    start.node.now += 5_000
    start.node.write("manifests/node-1", manifests.PodWithdrawn(pod="default/later", uid="l", source="apply"))
    result = start.node.run("trace", "later")
    assert result.output == "default/later began to terminate before the first step of its start\n"
    assert result.errors.startswith("note: default/later was removed 0.000 s ago")


def terminated(reason: Any) -> pod.TerminationRequested:
    return pod.TerminationRequested(**ABOUT, reason=reason, grace_period_seconds=2, deadline=NOON)


def test_a_pod_whose_predecessor_ends_first(start: Started) -> None:
    start.whole()
    start.after(0, pod.SuccessorAwaits(**ABOUT, successor="next"), terminated("Replaced"))
    start.node.now += 4_000
    assert first_line(start) == "default/web has waited 4.000 s for its predecessor to end"


def test_a_pod_deleted_during_its_start(start: Started) -> None:
    start.sandbox()
    start.asks_image()
    start.after(3_000, terminated("Deleted"))
    start.node.now += 60_000
    assert start.traced()[0] == (
        "default/web began to terminate 3.200 s after its start began, 3.000 s of it (94 %) getting image busybox:1 "
        "for container app: given up: the pod is ending"
    )


def test_a_pod_that_ran_when_the_log_began() -> None:
    start = Started()
    start.after(0, pod.PodEnded(**ABOUT))
    adopted = pod.PodAdopted(
        **{**ABOUT, "uid": "old"},
        source="apply",
        digest="d",
        manifest=manifest(),
        accepted_at=NOON,
        sandbox_hash="s",
        container_hashes={},
    )
    start.after(0, adopted)
    start.node.now += 3_000
    assert start.traced() == ["default/web already ran when this log began, 3.000 s ago; its start is not recorded"]
