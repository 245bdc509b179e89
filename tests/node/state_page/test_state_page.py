"""The page /metrics/state: pods, containers and the node with the names, labels and values of kube-state-metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from chronolet.devices import actor as devices_actor
from chronolet.devices.state import State as Devices
from chronolet.history.entries import NoArchive
from chronolet.history.state import Moment
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.node.http.api_node import Facts
from chronolet.node.http.pages import pod_pages
from chronolet.node.settings.table import Settings
from chronolet.node.state_page import pods
from chronolet.node.state_page.page import StatePage
from chronolet.pleg import actor as pleg_actor
from chronolet.pleg.state import State as Pleg
from chronolet.pod import actor as pod_actor
from chronolet.pod.decider import DECIDER
from chronolet.pod.state import State
from chronolet.qos import actor as qos_actor
from chronolet.qos.state import State as Qos
from chronolet_schemas import pod
from chronolet_schemas.envelope import START
from chronolet_schemas.podspec.container import ResourceRequirements
from chronolet_schemas.podspec.meta import OwnerReference
from chronolet_schemas.qos import System
from tests.deciders.pod.life import T0, Life, container, manifest, running
from tests.deciders.qos.nodes import GIB, node

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

WHOSE = {"namespace": "default", "pod": "web", "uid": "u1"}
APP = {**WHOSE, "container": "app"}
SYSTEM = System(kernel_version="6.1", os_image='Debian "12"', internal_ip="192.0.2.7", storage_bytes=GIB)


def facts(**changes: Any) -> Facts:
    found = Facts(Qos(node=node(system=SYSTEM)), Pleg(), Devices(), alive=True, listed_by=True, now=T0)
    return found._replace(**changes)


def moment(*states: State) -> Moment:
    return Moment(START, {"pod": {one.pod: one for one in states}})


def read(body: bytes) -> Samples:
    """Parse the page; each series must occur once."""
    found: Samples = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def samples(*lives: Life, **changes: Any) -> Samples:
    return read(StatePage("n").of(moment(*(one.state for one in lives)), facts(**changes)))


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def labels_of(found: Samples, name: str) -> list[dict[str, str]]:
    return [dict(labels) for other, labels in found if other == name]


def test_a_running_pod() -> None:
    found = samples(running())
    assert value(found, "kube_pod_status_phase", **WHOSE, phase="Running") == 1
    assert value(found, "kube_pod_status_phase", **WHOSE, phase="Pending") == 0
    assert len(labels_of(found, "kube_pod_status_phase")) == 5
    assert value(found, "kube_pod_status_ready", **WHOSE, condition="true") == 1
    assert value(found, "kube_pod_status_scheduled", **WHOSE, condition="true") == 1
    assert value(found, "kube_pod_status_qos_class", **WHOSE, qos_class="BestEffort") == 1
    assert value(found, "kube_pod_created", **WHOSE) == value(found, "kube_pod_start_time", **WHOSE) == T0 / 1000
    (info,) = labels_of(found, "kube_pod_info")
    assert info == {
        **WHOSE,
        "host_ip": "192.0.2.1",
        "pod_ip": "10.1.0.2",
        "node": "n",
        "created_by_kind": "",
        "created_by_name": "",
        "priority_class": "",
        "host_network": "false",
    }
    no_owner = {"owner_kind": "", "owner_name": "", "owner_is_controller": ""}
    assert labels_of(found, "kube_pod_owner") == [{**WHOSE, **no_owner}]
    assert value(found, "kube_pod_container_status_running", **APP) == 1
    assert value(found, "kube_pod_container_status_ready", **APP) == 1
    assert value(found, "kube_pod_container_status_waiting", **APP) == 0
    assert value(found, "kube_pod_container_status_restarts_total", **APP) == 0
    assert value(found, "kube_pod_container_state_started", **APP) == T0 / 1000
    (container_info,) = labels_of(found, "kube_pod_container_info")
    assert container_info["container_id"] == "docker://app-0"
    assert (container_info["image"], container_info["image_spec"]) == ("busybox:1", "busybox:1")
    assert not labels_of(found, "kube_pod_container_status_last_terminated_reason")
    assert not labels_of(found, "kube_pod_completion_time")


def test_a_crash_loop() -> None:
    life = running().dies(code=3)
    life.waits_out().start().dies(code=3)
    found = samples(life)
    assert value(found, "kube_pod_container_status_waiting", **APP) == 1
    assert value(found, "kube_pod_container_status_waiting_reason", **APP, reason="CrashLoopBackOff") == 1
    assert value(found, "kube_pod_container_status_restarts_total", **APP) == 1
    assert value(found, "kube_pod_container_status_last_terminated_reason", **APP, reason="Error") == 1
    assert value(found, "kube_pod_container_status_last_terminated_exitcode", **APP) == 3
    assert value(found, "kube_pod_container_status_last_terminated_timestamp", **APP) == life.at / 1000
    assert value(found, "kube_pod_status_ready", **WHOSE, condition="false") == 1
    assert value(found, "kube_pod_status_phase", **WHOSE, phase="Running") == 1


def test_a_completed_pod() -> None:
    life = running(restart_policy="Never").dies(code=0, reason="Completed")
    found = samples(life)
    assert value(found, "kube_pod_status_phase", **WHOSE, phase="Succeeded") == 1
    assert value(found, "kube_pod_container_status_terminated", **APP) == 1
    assert value(found, "kube_pod_container_status_terminated_reason", **APP, reason="Completed") == 1
    assert value(found, "kube_pod_completion_time", **WHOSE) == life.at / 1000
    assert value(found, "kube_pod_restart_policy", **WHOSE, type="Never") == 1


def test_a_failed_pod_has_its_reason_even_if_it_is_not_a_usual_one() -> None:
    failed = pod.PodFailed(pod="default/web", uid="u1", reason="OutOfcpu", message="no room")
    state = DECIDER.evolve(Life().apply(manifest()).state, failed)
    found = read(StatePage("n").of(moment(state), facts()))
    assert value(found, "kube_pod_status_reason", **WHOSE, reason="OutOfcpu") == 1
    assert value(found, "kube_pod_status_reason", **WHOSE, reason="Evicted") == 0


def test_requests_and_limits_of_app_and_init_containers() -> None:
    resources = ResourceRequirements(
        requests={"cpu": "500m", "memory": "64Mi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
        limits={"memory": "128Mi"},
    )
    one = manifest(container(resources=resources), init_containers=(container("first"),))
    life = Life().apply(one)
    found = samples(life)
    requests = "kube_pod_container_resource_requests"
    assert value(found, requests, **APP, node="n", resource="cpu", unit="core") == 0.5
    assert value(found, requests, **APP, node="n", resource="memory", unit="byte") == 64 << 20
    assert value(found, requests, **APP, node="n", resource="hugepages_2Mi", unit="byte") == 4 << 20
    assert value(found, requests, **APP, node="n", resource="example_com_gpu", unit="integer") == 2
    limits = "kube_pod_container_resource_limits"
    assert value(found, limits, **APP, node="n", resource="memory", unit="byte") == 128 << 20
    assert [one["container"] for one in labels_of(found, "kube_pod_init_container_status_waiting")] == ["first"]
    assert [one["container"] for one in labels_of(found, "kube_pod_container_status_waiting")] == ["app"]


def test_owners_and_the_creator() -> None:
    one = manifest()
    owners = (OwnerReference(kind="Node", name="a"), OwnerReference(kind="ReplicaSet", name="web-1", controller=True))
    owned = replace(one, metadata=replace(one.metadata, owner_references=owners))
    found = samples(Life().apply(owned))
    (info,) = labels_of(found, "kube_pod_info")
    assert (info["created_by_kind"], info["created_by_name"]) == ("ReplicaSet", "web-1")
    shown = {(one["owner_kind"], one["owner_is_controller"]) for one in labels_of(found, "kube_pod_owner")}
    assert shown == {("Node", "false"), ("ReplicaSet", "true")}


def test_a_terminating_pod() -> None:
    life = running().withdraw(grace=30)
    found = samples(life)
    assert value(found, "kube_pod_deletion_timestamp", **WHOSE) == (life.at + 30_000) / 1000


def test_the_node() -> None:
    found = samples()
    (info,) = labels_of(found, "kube_node_info")
    assert (info["node"], info["os_image"], info["internal_ip"]) == ("n", 'Debian "12"', "192.0.2.7")
    capacity = "kube_node_status_capacity"
    assert value(found, capacity, node="n", resource="cpu", unit="core") == 3
    assert value(found, capacity, node="n", resource="memory", unit="byte") == 8 * GIB
    assert value(found, capacity, node="n", resource="pods", unit="integer") == 110
    assert value(found, capacity, node="n", resource="ephemeral_storage", unit="byte") == GIB
    assert value(found, "kube_node_status_allocatable", node="n", resource="cpu", unit="core") == 3
    assert value(found, "kube_node_status_condition", node="n", condition="DiskPressure", status="unknown") == 1
    assert value(found, "kube_node_status_addresses", node="n", type="Hostname", address="n") == 1


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"alive": False}, "unknown"),
        ({"listed_by": False}, "false"),
        ({"pleg": Pleg(relist="working", listed_at=T0)}, "true"),
    ],
)
def test_the_nodes_readiness(changes: dict[str, Any], status: str) -> None:
    found = samples(**changes)
    ready = {
        one: value(found, "kube_node_status_condition", node="n", condition="Ready", status=one)
        for one in ("true", "false", "unknown")
    }
    assert ready == {**dict.fromkeys(ready, 0), status: 1}


def test_a_node_that_is_not_described_yet_has_no_capacity() -> None:
    found = samples(qos=Qos())
    assert not labels_of(found, "kube_node_status_capacity")
    assert labels_of(found, "kube_node_info")


def test_only_changed_pods_are_rendered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []

    def counted(state: State, name: str) -> tuple[str, ...]:
        rendered.append(state.pod)
        return pieces(state, name)

    pieces = pods.pieces
    monkeypatch.setattr(pods, "pieces", counted)
    page = StatePage("n")
    first, second = running().state, replace(running().state, pod="default/other", uid="u2")
    both = page.of(moment(first, second), facts())
    assert page.of(moment(first, second), facts()) == both
    assert sorted(rendered) == ["default/other", "default/web"]
    changed = running().dies().state
    assert page.of(moment(changed, second), facts()) != both
    assert rendered[2:] == ["default/web"]
    alone = page.of(moment(second), facts())
    assert alone == StatePage("n").of(moment(second), facts()), "a removed pod leaves nothing behind"


def test_the_page_of_a_log(tmp_path: Path) -> None:
    store = MemoryStore(MemoryServer(lambda: 0))
    kinds = (pod_actor.kind(), devices_actor.kind(), qos_actor.kind(), pleg_actor.kind())
    pages = pod_pages(Settings(node="n", root_dir=tmp_path), store, NoArchive(), *kinds)
    answer = pages["/metrics/state"]({})
    assert (answer.status, answer.content_type.partition(";")[0]) == (200, "text/plain")
    assert value(read(answer.body), "kube_node_spec_unschedulable", node="n") == 0
