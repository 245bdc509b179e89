"""A pod's admission: its requests to other kinds before it starts, and their replies."""

from __future__ import annotations

from typing import Any, Self

import pytest

from chronolet.kernel.decider import Due
from chronolet.pod import signals
from chronolet.pod.admission.admission import UNEXPECTED
from chronolet.pod.admission.hashes import container_hashes, sandbox_hash
from chronolet.pod.admission.waiting import WAITING
from chronolet.pod.decider import decider
from chronolet.pod.status.status import pod_status
from chronolet.pod.wanted import StartContainer
from chronolet_schemas import devices, pleg, pod
from chronolet_schemas.podspec import Container, Pod, ResourceRequirements
from tests.deciders.pod.life import POD, Life, container, manifest

GPU = "vendor.test/gpu"
KINDS = frozenset({"devices"})


def wants(name: str = "app", count: int = 1, **more: Any) -> Container:
    return container(name, resources=ResourceRequirements(limits={GPU: str(count)}), **more)


class Admitted(Life):
    """A pod on a node that hosts the kinds in `kinds` for admission."""

    def __init__(self, kinds: frozenset[str] = KINDS) -> None:
        super().__init__()
        self.decider = decider(kinds)

    def ref(self, name: str) -> dict[str, Any]:
        return {"pod": POD, "uid": self.state.uid, "container": name}

    def grants(self, name: str = "app", *ids: str, pre_start: bool = False, **answer: Any) -> Self:
        allocation = devices.Allocation(devices=ids or ("d1",), answer=devices.Answer(**answer), pre_start=pre_start)
        return self.when(devices.DevicesAllocated(**self.ref(name), resource=GPU, allocation=allocation))

    def puts_off(self, name: str = "app", message: str = "waiting for a plugin", reason: str = "x") -> Self:
        return self.when(
            devices.DevicesPending(
                **self.ref(name), role="app", wants={GPU: 1}, at=1, resource=GPU, reason=reason, message=message
            )
        )

    def refuses(self, name: str = "app", message: str = "no") -> Self:
        return self.when(devices.DevicesRefused(**self.ref(name), resource=GPU, reason="x", message=message))

    def allows(self, attempt: int = 0, name: str = "app") -> Self:
        return self.when(devices.PreStartDone(**self.ref(name), attempt=attempt))

    def runs(self, **answer: Any) -> Self:
        return self.apply(manifest(wants())).grants(**answer).sandbox_up().start()

    def when_sandbox_dies(self) -> Self:
        """Report that the sandbox died, then that the container `app` was stopped."""
        self.when(
            pleg.ContainerDied(
                pod=POD,
                uid=self.state.uid,
                container="POD",
                attempt=0,
                id="sandbox-0",
                exit_code=137,
                reason="Error",
                started_at=self.state.sandbox.started_at,
                finished_at=self.at,
            )
        )
        return self.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")

    @property
    def requested(self) -> list[str]:
        return [one.container for one in self.facts if isinstance(one, pod.DevicesRequested)]

    def waiting(self, name: str = "app") -> tuple[str, str]:
        (status,) = (one for one in pod_status(self.state).container_statuses if one.name == name)
        assert status.state.waiting is not None
        return status.state.waiting.reason, status.state.waiting.message


def test_a_pod_without_needs_sends_no_requests() -> None:
    assert Admitted().apply(manifest()).kinds == ["SpecAccepted", "SandboxStartRequested"]


def test_devices_come_before_the_sandbox() -> None:
    life = Admitted().apply(manifest(wants(count=2), container("other")))
    assert life.kinds == ["SpecAccepted", "AdmissionBegan", "DevicesRequested"]
    request = life.only(pod.DevicesRequested)
    assert (request.container, request.role, request.resources, request.sandbox) == ("app", "app", {GPU: 2}, 0)
    assert life.effects == {}
    life.grants("app", "d1", "d2", envs={"A": "1"})
    assert life.kinds == ["DevicesGranted", "SandboxStartRequested"]
    life.sandbox_up().image_there()
    start = life.effects["container/app"]
    assert isinstance(start, StartContainer)
    assert (start.device_ids, start.devices.envs) == ({GPU: ("d1", "d2")}, {"A": "1"})
    life.up().image_there("other")
    assert life.effects["container/other"].device_ids == {}  # type: ignore[attr-defined]


def test_containers_request_devices_in_the_order_of_their_start() -> None:
    spec = manifest(wants(), init_containers=(wants("i"), wants("s", restart_policy="Always")))
    life = Admitted().apply(spec)
    found = [(one.container, one.role) for one in life.facts if isinstance(one, pod.DevicesRequested)]
    assert found == [("i", "init"), ("s", "sidecar"), ("app", "app")]
    life.grants("i").grants("s")
    assert life.kinds == ["DevicesGranted"]
    assert life.grants("app").kinds == ["DevicesGranted", "SandboxStartRequested"]


def test_several_resources_have_one_reply() -> None:
    life = Admitted().apply(manifest(wants()))
    part = devices.DevicesAllocated(
        **life.ref("app"), resource=GPU, allocation=devices.Allocation(devices=("a",)), complete=False
    )
    assert life.when(part).facts == ()
    first = devices.Allocation(devices=("a",), answer=devices.Answer(envs={"A": "1"}))
    second = devices.Allocation(devices=("n",), answer=devices.Answer(envs={"A": "2", "B": "2"}), pre_start=True)
    life.when(devices.DevicesAllocated(**life.ref("app"), resource="z/z", allocation=second, earlier={GPU: first}))
    granted = life.only(pod.DevicesGranted)
    assert granted.devices == {GPU: ("a",), "z/z": ("n",)}
    assert (granted.answer.envs, granted.pre_start) == ({"A": "1", "B": "2"}, True)


def test_a_deferred_claim_waits_and_shows_why() -> None:
    life = Admitted().apply(manifest(wants(), container("other")))
    assert life.puts_off(message="waiting for a device plugin").kinds == ["DevicesAwaited"]
    assert life.reasons_and_texts == ((WAITING, "waiting for a device plugin"),)
    assert life.waiting() == (WAITING, "waiting for a device plugin")
    assert life.waiting("other") == (WAITING, "container app is waiting for a device plugin")
    assert life.puts_off(message="waiting for a device plugin").events == ()
    assert life.puts_off(message="waiting for another thing").kinds == ["DevicesAwaited"]
    assert life.grants().kinds == ["DevicesGranted", "SandboxStartRequested"]
    assert life.sandbox_up().waiting("other")[0] != WAITING


def test_an_unanswered_request_is_repeated() -> None:
    life = Admitted().apply(manifest(wants()))
    first = life.only(pod.DevicesRequested)
    assert life.due == life.at + 60_000
    again = life.wake().only(pod.DevicesRequested)
    assert (again.requested_at, again.container) == (first.requested_at + 60_000, "app")
    message = "waiting for a reply from the kind `devices`: does a process of this node host it?"
    assert life.waiting() == (WAITING, message)
    life.puts_off()
    assert life.due == life.at + 300_000
    life.wake()
    assert life.requested == ["app"]
    assert life.waiting()[0] == WAITING  # it has been waiting since the first request
    life.grants()
    assert life.due is None


def test_a_clock_set_back_extends_no_wait() -> None:
    life = Admitted().apply(manifest(wants()))
    life.at -= 3_600_000
    life.puts_off()
    assert life.due is not None
    life.wake()
    assert life.requested == ["app"]


def test_a_refused_pod_fails_with_the_kubelets_message() -> None:
    life = Admitted().apply(manifest(wants(), wants("second"))).grants()
    life.refuses("second", "cannot allocate unregistered device x")
    failure = "Allocate failed due to cannot allocate unregistered device x, which is unexpected"
    assert life.reasons_and_texts == ((UNEXPECTED, failure),)
    assert life.recorded[0].severity == "Warning"
    assert life.kinds == ["PodFailed", "DevicesReleased"]
    assert life.only(pod.DevicesReleased).containers == ("app", "second")
    status = pod_status(life.state)
    assert (status.phase, status.reason, status.message) == ("Failed", UNEXPECTED, f"Pod was rejected: {failure}")
    assert life.grants("second").events == ()
    assert life.withdraw().kinds == ["TerminationRequested", "CleanupRequested"]


def test_replies_to_other_pods_are_ignored() -> None:
    life = Admitted().apply(manifest(wants(), container("other")))
    for name in ("other", "unknown"):
        assert life.grants(name).events == ()
    stale = devices.DevicesRefused(pod=POD, uid="u0", container="app", resource=GPU, reason="x", message="x")
    assert life.when(stale).events == ()
    assert life.grants().grants().events == ()
    assert life.puts_off().events == ()
    assert life.allows().events == ()


def test_everything_is_released_once_nothing_runs() -> None:
    life = Admitted().runs()
    life.withdraw()
    assert "DevicesReleased" not in life.kinds
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")
    assert "DevicesReleased" in life.kinds
    assert life.state.wishes == {}


def test_a_succeeded_pod_releases_its_devices() -> None:
    life = Admitted().apply(manifest(wants(), restart_policy="Never")).grants().sandbox_up().start()
    life.dies(code=0, reason="Completed")
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0", exit_code=0, finished_at=life.at)
    assert life.only(pod.DevicesReleased).containers == ("app",)
    assert pod_status(life.state).phase == "Succeeded"


def test_a_failed_pod_releases_its_devices() -> None:
    life = Admitted().apply(manifest(wants(), active_deadline_seconds=5)).grants().sandbox_up().start()
    life.when(Due(at=life.at + 5_000), at=life.at + 5_000)
    assert life.kinds == ["PodFailed", "ContainerStopRequested"]
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")
    assert "DevicesReleased" in life.kinds


def test_a_new_sandbox_requests_again() -> None:
    life = Admitted().runs()
    life.when_sandbox_dies().wake()
    request = life.only(pod.DevicesRequested)
    assert request.sandbox == 1
    assert "SandboxStartRequested" not in life.kinds
    assert life.puts_off().kinds == ["DevicesAwaited"]
    assert life.grants().kinds[:2] == ["DevicesGranted", "SandboxStartRequested"]


def test_a_changed_claim_waits_for_the_end_of_the_running_attempt() -> None:
    life = Admitted().runs()
    life.apply(manifest(wants(count=2)))
    assert "DevicesReleased" not in life.kinds
    life.kept()
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")
    assert life.only(pod.DevicesReleased).containers == ("app",)
    assert life.only(pod.DevicesRequested).resources == {GPU: 2}
    assert "container/app" not in life.effects
    life.puts_off()
    assert life.waiting()[0] == WAITING
    assert life.grants("app", "a", "b").effects["container/app"] is not None


def test_a_changed_claim_that_is_refused_blocks_its_container_alone() -> None:
    life = Admitted().apply(manifest(wants(), container("other"))).grants().sandbox_up().start().start("other")
    life.apply(manifest(wants(count=9), container("other"))).kept()
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")
    life.refuses()
    blocked = life.only(pod.ContainerBlocked)
    assert (blocked.reason, blocked.container) == (UNEXPECTED, "app")
    assert life.only(pod.DevicesReleased).containers == ("app",)
    assert life.state.container("other").phase == "running"


def test_a_container_that_needs_no_more_devices_releases_them() -> None:
    life = Admitted().runs()
    life.apply(manifest())
    assert life.only(pod.AdmissionBegan).kinds == ()
    life.kept()
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=0, reason="Completed")
    assert life.only(pod.DevicesReleased).containers == ("app",)
    assert "container/app" in life.effects


def test_a_container_removed_from_the_spec_releases_its_devices() -> None:
    life = Admitted().apply(manifest(wants(), wants("b"))).grants().grants("b").sandbox_up().start().start("b")
    life.apply(manifest(wants())).kept()
    life.answer("container/b", signals.ContainerDead, id="b-0", exit_code=0, reason="Completed")
    assert life.only(pod.DevicesReleased).containers == ("b",)


def test_without_a_devices_kind_the_container_waits_and_shows_why() -> None:
    life = Admitted(frozenset()).apply(manifest(wants(), container("other")))
    assert life.kinds == ["SpecAccepted", "AdmissionBegan", "SandboxStartRequested"]
    assert life.only(pod.AdmissionBegan).kinds == ()
    life.sandbox_up()
    assert life.waiting()[0] == WAITING
    assert "does not host the kind `devices`" in life.waiting()[1]
    life.start("other")
    # The node restarts with that kind.
    life.decider = decider(KINDS)
    life.dies("other")
    assert life.only(pod.AdmissionBegan).kinds == ("devices",)
    assert life.requested == ["app"]


# -- before a start ------------------------------------------------------------------------------------------------
def awaiting_pre_start(life: Admitted) -> Admitted:
    life.apply(manifest(wants())).grants(pre_start=True).sandbox_up().image_there()
    return life


def test_plugins_get_pre_start_before_a_start() -> None:
    life = awaiting_pre_start(Admitted())
    assert life.kinds == ["ImageReady", "ContainerStartRequested", "PreStartRequested"]
    assert "container/app" not in life.effects
    assert life.allows(attempt=7).events == ()
    assert life.allows().kinds == ["PreStartAllowed"]
    assert life.up().kinds == ["ContainerStarted"]
    # The same is true before the next start.
    life.dies()
    assert life.image_there().only(pod.PreStartRequested).attempt == 1


def test_an_unanswered_pre_start_is_repeated() -> None:
    life = awaiting_pre_start(Admitted())
    assert life.due == life.at + 60_000
    assert life.wake().kinds == ["PreStartRequested"]
    life.allows()
    assert life.due is None


def test_a_start_that_plugins_do_not_allow_is_retried() -> None:
    life = awaiting_pre_start(Admitted())
    life.when(devices.PreStartFailed(**life.ref("app"), attempt=0, message="no"))
    assert life.waiting() == ("CreateContainerConfigError", "no")
    life.wake()
    again = life.image_there().only(pod.PreStartRequested)
    assert (again.attempt, again.failures) == (0, 1)
    life.allows()
    # A start that failed for another reason is also announced again.
    life.answer("container/app", signals.ContainerRefused, reason="CreateContainerError", message="no", exit_code=1)
    life.wake()
    assert life.image_there().only(pod.PreStartRequested).failures == 2


def test_a_finished_pod_starts_nothing_that_waits_for_permission() -> None:
    life = awaiting_pre_start(Admitted())
    life.withdraw()
    assert life.kinds == ["TerminationRequested", "ContainerStartFailed", "DevicesReleased", "SandboxStopRequested"]
    assert life.allows().events == ()


# -- adoption ------------------------------------------------------------------------------------------------------
def adopted(one: Pod) -> pod.AdoptPod:
    return pod.AdoptPod(
        request="r1",
        pod=POD,
        uid="u1",
        source="apply",
        digest="x",
        manifest=one,
        accepted_at=1,
        found=(
            pod.FoundContainer(
                container="POD",
                attempt=0,
                id="sandbox-0",
                state="running",
                started_at=1,
                spec_hash=sandbox_hash(one),
            ),
            pod.FoundContainer(
                container="app",
                attempt=0,
                id="app-0",
                state="running",
                started_at=2,
                spec_hash=container_hashes(one)["app"],
                devices={GPU: ("d1",)},
            ),
        ),
    )


def test_running_containers_keep_their_devices_in_a_new_log() -> None:
    life = Admitted().when(adopted(manifest(wants())))
    request = life.only(pod.DevicesRequested)
    assert (request.held, request.sandbox) == ({GPU: ("d1",)}, 0)
    assert life.grants().kinds == ["DevicesGranted"]
    assert life.state.wishes["app"].devices == {GPU: ("d1",)}


def test_found_devices_are_kept_until_a_devices_kind_is_hosted() -> None:
    life = Admitted(frozenset()).when(adopted(manifest(wants())))
    assert life.state.wishes["app"].phase == "found"
    life.decider = decider(KINDS)
    life.apply(manifest(wants()), uid="u1")
    assert life.requested == ["app"]


@pytest.mark.parametrize("kinds", [frozenset[str](), KINDS])
def test_the_log_can_be_read_without_the_settings(kinds: frozenset[str]) -> None:
    here, there = decider(frozenset()), decider(kinds)
    assert (here.evolve, here.outstanding) == (there.evolve, there.outstanding)


def test_a_running_pod_notices_new_participants_by_itself() -> None:
    """This happens when the agent has restarted with other settings and no other message arrives for the pod."""
    life = Admitted(frozenset()).apply(manifest()).sandbox_up().start()
    assert life.due is None
    life.decider = decider(frozenset(("qos",)))
    assert life.wake().kinds == ["AdmissionBegan", "CgroupRequested"]
    life.decider = decider(frozenset())
    assert life.wake().only(pod.AdmissionBegan).kinds == ()
