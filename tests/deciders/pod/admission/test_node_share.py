"""A pod's share of the node: its request before it starts, and the replies."""

from __future__ import annotations

from typing import Any, Self

import pytest

from chronolet.kernel.decider import Due
from chronolet.pod import signals
from chronolet.pod.admission.node_share import ASK_AGAIN_MS
from chronolet.pod.decider import decider
from chronolet.pod.status.status import pod_status
from chronolet.pod.wanted import StartContainer, StartSandbox
from chronolet_schemas import devices, pod, qos
from chronolet_schemas.podspec import Container, Pod, ResourceRequirements
from chronolet_schemas.resources import PodNeeds
from tests.deciders.pod.admission.test_admission import GPU, wants
from tests.deciders.pod.life import POD, Life, container, manifest

PARENT = "/kubepods/burstable/podu"
MESSAGE = "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 2000"


def requests(cpu: str = "500m", **more: Any) -> Container:
    return container(resources=ResourceRequirements(requests={"cpu": cpu}), **more)


class Shared(Life):
    """A pod on a node that hosts qos."""

    def __init__(self, *kinds: str) -> None:
        super().__init__()
        self.decider = decider(frozenset(kinds or ("qos",)))

    def ref(self) -> dict[str, Any]:
        return {"pod": POD, "uid": self.state.uid}

    def grants(self, parent: str = PARENT) -> Self:
        return self.when(qos.CgroupReady(**self.ref(), parent=parent))

    def refuses(self) -> Self:
        return self.when(qos.PodRefused(**self.ref(), reason="OutOfcpu", message=MESSAGE))

    def runs(self, pod_: Pod | None = None) -> Self:
        return self.apply(pod_ or manifest(requests())).grants().sandbox_up().start()


def test_nothing_is_created_before_the_share_is_granted() -> None:
    life = Shared().apply(manifest(requests()))
    needs = PodNeeds(qos_class="Burstable", cpu_request_milli=500)
    assert life.kinds == ["SpecAccepted", "AdmissionBegan", "CgroupRequested"]
    assert life.only(pod.AdmissionBegan).kinds == ("qos",)
    assert life.only(pod.CgroupRequested) == pod.CgroupRequested(**life.ref(), needs=needs, requested_at=life.at)
    assert life.effects == {}
    assert pod_status(life.state).phase == "Pending"
    life.grants()
    assert life.kinds == ["CgroupGranted", "SandboxStartRequested"]
    sandbox: Any = life.effects["sandbox"]
    assert isinstance(sandbox, StartSandbox)
    assert sandbox.cgroup_parent == PARENT
    life.sandbox_up()
    life.image_there()
    started: Any = life.effects["container/app"]
    assert isinstance(started, StartContainer)
    assert started.cgroup_parent == PARENT


def test_a_pod_starts_without_a_hosted_qos() -> None:
    life = Shared("devices").apply(manifest(requests()))
    assert life.kinds == ["SpecAccepted", "SandboxStartRequested"]
    sandbox: Any = life.effects["sandbox"]
    assert sandbox.cgroup_parent == ""


def test_devices_come_first() -> None:
    life = Shared("devices", "qos").apply(manifest(wants()))
    assert life.only(pod.AdmissionBegan).kinds == ("devices", "qos")
    assert life.kinds[-1] == "DevicesRequested"
    allocation = devices.Allocation(devices=("d1",))
    life.when(devices.DevicesAllocated(**life.ref(), container="app", resource=GPU, allocation=allocation))
    assert life.kinds == ["DevicesGranted", "CgroupRequested"]
    life.grants()
    assert life.kinds == ["CgroupGranted", "SandboxStartRequested"]


def test_a_request_is_repeated_until_it_is_answered() -> None:
    life = Shared().apply(manifest(requests()))
    request = life.only(pod.CgroupRequested)
    assert life.due == request.requested_at + ASK_AGAIN_MS
    life.when(Due(at=life.due), at=life.due)
    assert life.only(pod.CgroupRequested).needs == request.needs
    assert life.due == request.requested_at + 2 * ASK_AGAIN_MS
    life.grants()
    assert life.due is None
    life.grants().then()
    life.grants("/elsewhere")
    assert life.kinds == ["CgroupGranted"]


def test_a_pod_that_does_not_fit_is_rejected_with_the_kubelets_message() -> None:
    life = Shared().apply(manifest(requests("9"))).refuses()
    status = pod_status(life.state)
    assert (status.phase, status.reason, status.message) == ("Failed", "OutOfcpu", f"Pod was rejected: {MESSAGE}")
    assert life.reasons_and_texts == (("OutOfcpu", MESSAGE),)
    assert life.effects == {}
    life.refuses().then()
    life.grants().then()


@pytest.mark.parametrize("answer", ["other", "early"])
def test_unexpected_replies_are_ignored(answer: str) -> None:
    life = Shared().apply(manifest(requests()))
    if answer == "early":
        life = Shared("devices").apply(manifest(requests()))
    uid = "other" if answer == "other" else life.state.uid
    life.when(qos.CgroupReady(pod=POD, uid=uid, parent=PARENT)).then()


def test_a_changed_spec_requests_again_and_its_starts_wait_for_the_reply() -> None:
    life = Shared().runs()
    life.apply(manifest(requests("600m")))
    assert life.only(pod.CgroupRequested).needs.cpu_request_milli == 600
    assert not life.only(pod.CgroupRequested).running
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")
    assert "container/app" not in life.effects
    life.grants()
    assert life.kinds[0] == "CgroupGranted"
    assert "container/app" in life.effects


def test_a_changed_spec_that_does_not_fit_ends_the_pod() -> None:
    life = Shared().runs().apply(manifest(requests("9"))).refuses()
    assert pod_status(life.state).reason == "OutOfcpu"
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")
    assert "CgroupReleased" not in life.kinds, "the sandbox still runs"
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0", exit_code=0)
    assert life.kinds[-1] == "CgroupReleased"
    assert life.state.share.phase == "none"


def test_a_change_of_the_qos_class_replaces_the_sandbox() -> None:
    life = Shared().runs().apply(manifest(container()))
    assert life.only(pod.ContainerStopRequested).reason == "SandboxGone"


def test_a_succeeded_pod_releases_its_share() -> None:
    life = Shared().runs(manifest(requests(), restart_policy="Never"))
    life.dies(code=0, reason="Completed")
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0", exit_code=0)
    assert life.kinds[-1] == "CgroupReleased"
    assert life.effects.keys() <= {"exit/app-0"}


def test_an_adopted_pod_is_not_refused() -> None:
    life = Shared("devices").apply(manifest(requests())).sandbox_up().start()
    life.decider = decider(frozenset(("qos",)))
    life.apply(manifest(requests(), termination_grace_period_seconds=7))
    request = life.only(pod.CgroupRequested)
    assert request.running
    life.grants()
    assert life.state.share.parent == PARENT
