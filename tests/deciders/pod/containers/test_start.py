"""From a spec to running containers: sandbox, images, starts, and their failures."""

from __future__ import annotations

import pytest

from chronolet.kernel.kind import Due
from chronolet.pod import signals, wanted
from chronolet.pod.decider import DECIDER
from chronolet.pod.status.status import plain_status
from chronolet_schemas import pod, podspec
from chronolet_schemas.kube_events import Recorded
from chronolet_schemas.podspec import Container
from tests.deciders.given import Scene
from tests.deciders.pod.life import POD, RAW, T0, Life, container, manifest, running


def test_a_spec_leads_to_a_sandbox_then_images_then_starts() -> None:
    life = Life().apply(manifest(container("app"), container("log")))
    assert life.kinds == ["SpecAccepted", "SandboxStartRequested"]
    effect = life.effects["sandbox"]
    assert isinstance(effect, wanted.StartSandbox)
    assert (effect.pod, effect.uid, effect.attempt, effect.manifest.key) == (POD, "u1", 0, POD)

    assert life.sandbox_up().kinds == ["SandboxStarted", "ImageEnsureRequested", "ImageEnsureRequested"]
    image = life.effects["container/log"]
    assert isinstance(image, wanted.EnsureImage)
    assert (image.image, image.policy, image.attempt) == ("busybox:1", "IfNotPresent", 0)

    life.start("app")
    assert life.image_there("log").kinds == ["ImageReady", "ContainerStartRequested"]
    life.then_kube_events(
        ("Pulled", 'Container image "busybox:1" already present on machine and can be accessed by the pod')
    )
    start = life.effects["container/log"]
    assert isinstance(start, wanted.StartContainer)
    assert (start.sandbox_id, start.sandbox_ip, start.image_id) == ("sandbox-0", "10.1.0.2", "sha256:1")
    assert start.spec_hash == life.state.container_hashes["log"]

    life.up("log").then(
        pod.ContainerStarted(pod=POD, uid="u1", container="log", attempt=0, id="log-0", started_at=T0)
    ).then_kube_events(("Created", "Container created"), ("Started", "Container started"))
    assert (life.effects, life.due) == ({}, None)


def test_pod_events_name_the_container_field() -> None:
    life = running()
    event = life.events[-1]
    assert (event.namespace, event.name, event.uid, event.field_path) == (
        "default",
        "web",
        "u1",
        "spec.containers{app}",
    )


def test_containers_start_in_the_specs_order() -> None:
    life = Life().apply(manifest(container("first"), container("second"))).sandbox_up()
    assert life.image_there("second").kinds == ["ImageReady"]
    assert life.image_there("first").kinds == ["ImageReady", "ContainerStartRequested"]
    assert life.up("first").kinds == ["ContainerStarted", "ContainerStartRequested"]
    assert life.facts[1].container == "second"


def test_a_waiting_container_delays_no_other() -> None:
    life = (
        Life()
        .apply(
            manifest(
                container("odd", **RAW),
                container("absent"),
                container("app"),
            )
        )
        .sandbox_up()
    )
    life.answer("container/absent", signals.ImageRefused, reason="ErrImagePull", message="no").start("app")
    assert [one.phase for one in life.state.containers] == ["waiting", "image_failed", "running"]
    life.wake().dies("app").start("app")
    assert [one.phase for one in life.state.containers] == ["waiting", "image_back_off", "running"]


def test_a_pull_is_reported_when_it_begins_and_when_it_ends() -> None:
    life = Life().apply(manifest()).sandbox_up()
    life.answer("container/app", signals.PullBegan).then_kube_events(("Pulling", 'Pulling image "busybox:1"'))
    assert life.state.container("app").phase == "pulling"
    life.answer(
        "container/app", signals.ImagePresent, image_id="i", pulled=True, milliseconds=1234, size_bytes=4711
    ).then_kube_events(
        (
            "Pulled",
            'Successfully pulled image "busybox:1" in 1.234s (1.234s including waiting). Image size: 4711 bytes.',
        )
    )


def test_an_image_that_cannot_be_pulled_waits_longer_each_time() -> None:
    life = Life().apply(manifest()).sandbox_up()
    waits = []
    for _ in range(7):
        life.answer("container/app", signals.ImageRefused, reason="ErrImagePull", message="no such image")
        life.then_kube_events(
            ("Failed", 'Failed to pull image "busybox:1": no such image'), ("Failed", "Error: ErrImagePull")
        )
        failed = life.at
        assert life.state.container("app").reason == "ErrImagePull"
        life.wake().then_kube_events(
            ("BackOff", 'Back-off pulling image "busybox:1"'), ("Failed", "Error: ImagePullBackOff")
        )
        assert life.state.container("app").reason == "ImagePullBackOff"
        assert life.waits_out().kinds == ["ImageEnsureRequested"]
        waits.append((life.at - failed) // 1000)
    assert waits == [10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(
    ("reason", "recorded"),
    [
        (
            "ErrImageNeverPull",
            ("ErrImageNeverPull", 'Container image "busybox:1" is not present with pull policy of Never'),
        ),
        ("InvalidImageName", ("InspectFailed", "bad")),
    ],
)
def test_other_image_errors(reason: str, recorded: tuple[str, str]) -> None:
    life = Life().apply(manifest()).sandbox_up()
    life.answer("container/app", signals.ImageRefused, reason=reason, message="bad").then_kube_events(
        recorded, ("Failed", f"Error: {reason}")
    )
    # Only a pull has a back-off: other failures keep their reason and are retried in each sync.
    for _ in range(3):
        began = life.at
        assert life.state.container("app").reason == reason
        assert life.wake().kinds == ["ImageEnsureRequested"]
        assert life.at == began + 10_000
        life.answer("container/app", signals.ImageRefused, reason=reason, message="bad")


def test_a_worker_that_fails_counts_as_a_failed_pull() -> None:
    life = Life().apply(manifest()).sandbox_up().fail("container/app", "no answer", timed_out=True)
    assert life.facts[0].message == "timed out: no answer"


def test_an_image_without_a_policy_is_pulled_by_its_tag() -> None:
    bare = podspec.Pod(
        metadata=podspec.ObjectMeta(name="web", namespace="default"),
        spec=podspec.PodSpec(dns_policy="Default", containers=(Container(name="app", image="busybox"),)),
    )
    effect = Life().apply(bare).sandbox_up().effects["container/app"]
    assert isinstance(effect, wanted.EnsureImage)
    assert effect.policy == "Always"


def test_a_sandbox_that_cannot_be_started_is_retried_under_the_same_number() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="port is taken")
    life.then(pod.SandboxStartFailed(pod=POD, uid="u1", attempt=0, message="port is taken", retry_at=T0 + 10_000))
    life.then_kube_events(("FailedCreatePodSandBox", "Failed to create pod sandbox: port is taken"))
    assert life.effects == {}
    first = Life().apply(manifest()).effects["sandbox"].intent
    assert life.wake().kinds == ["SandboxStartRequested"]
    assert life.effects["sandbox"].intent != first
    assert life.state.sandbox.attempt == 0
    assert life.sandbox_up().state.sandbox.failures == 0


def test_the_second_sandbox_that_cannot_be_started_keeps_its_number() -> None:
    life = running().sandbox_dies().stopped().fail("sandbox")
    assert life.wake().kinds == ["SandboxStartRequested"]
    assert life.state.sandbox.attempt == 1


def test_a_container_that_cannot_be_created_is_retried_under_the_same_number() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there()
    life.answer("container/app", signals.ContainerRefused, reason="CreateContainerError", message="bad mount")
    life.then_kube_events(("Failed", "Error: bad mount"))
    one = life.state.container("app")
    assert (one.phase, one.reason, one.attempt, one.restarts) == ("start_failed", "CreateContainerError", 0, 0)
    assert life.due == T0 + 10_000
    life.wake().start()
    assert (life.state.container("app").phase, life.state.container("app").attempt) == ("running", 0)


def test_a_start_that_raises_is_retried() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there().fail("container/app")
    assert life.state.container("app").reason == "CreateContainerError"


def test_a_container_that_cannot_be_run_counts_as_an_exit() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there()
    life.answer(
        "container/app", signals.ContainerRefused, reason="RunContainerError", message="no such file", id="app-0"
    )
    life.then_kube_events(("Created", "Container created"), ("Failed", "Error: no such file"))
    assert life.kinds == ["ContainerStartFailed", "RestartScheduled", "ImageEnsureRequested"]
    one = life.state.container("app")
    assert (one.attempt, one.reason, one.exit.exit_code, one.exit.reason) == (
        1,
        "RunContainerError",
        128,
        "ContainerCannotRun",
    )
    life.image_there().answer(
        "container/app", signals.ContainerRefused, reason="RunContainerError", message="no such file", id="app-1"
    )
    assert life.state.container("app").reason == "CrashLoopBackOff"


def test_under_policy_never_a_container_that_cannot_run_is_not_created_again() -> None:
    life = Life().apply(manifest(restart_policy="Never")).sandbox_up().image_there()
    life.answer(
        "container/app", signals.ContainerRefused, reason="RunContainerError", message="no such file", id="app-0"
    )
    assert life.kinds == ["ContainerStartFailed", "SandboxStopRequested"]


def test_a_container_found_dead_by_its_start_both_started_and_exited() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there()
    life.answer("container/app", signals.ContainerDead, id="app-0", exit_code=3, reason="Error")
    assert life.kinds[:2] == ["ContainerStarted", "ContainerExited"]
    assert (life.state.container("app").exit.exit_code, life.state.container("app").attempt) == (3, 1)


def test_a_sandbox_found_dead_by_its_start_is_replaced_after_a_wait() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert life.kinds == ["SandboxStarted", "SandboxExited"]
    assert life.due == T0 + 10_000
    assert life.wake().kinds == ["SandboxStartRequested"]
    life.then_kube_events(("SandboxChanged", "Pod sandbox changed, it will be killed and re-created."))
    assert life.state.sandbox.attempt == 1


def test_a_field_that_is_not_honoured_keeps_its_container_waiting() -> None:
    blocked = container("odd", **RAW)
    life = Life().apply(manifest(blocked, container("app")))
    assert life.kinds == ["SpecAccepted", "ContainerBlocked", "SandboxStartRequested"]
    assert life.reasons_and_texts[0][1].startswith("Error: spec.containers[0].volumeDevices: ")
    assert life.sandbox_up().kinds == ["SandboxStarted", "ImageEnsureRequested"]
    assert life.state.container("odd").phase == "waiting"


def test_a_container_whose_variables_exceed_the_size_limit_waits_with_the_variables_name() -> None:
    doubling = tuple(podspec.EnvVar(name=f"A{number}", value=f"$(A{number - 1})" * 2) for number in range(1, 40))
    bomb = container("bomb", env=(podspec.EnvVar(name="A0", value="aaaaaaaaaa"), *doubling))
    life = Life().apply(manifest(bomb, container("app")))
    assert life.kinds == ["SpecAccepted", "ContainerBlocked", "SandboxStartRequested"]
    assert life.only(pod.ContainerBlocked).reason == "CreateContainerConfigError"
    assert life.only(pod.ContainerBlocked).message == (
        "spec.containers[0].env[14]: variable A14 has 163845 bytes once expanded, above 131072, "
        "Linux's limit for one string"
    )
    life.sandbox_up()
    assert life.state.container("bomb").phase == "waiting"


def test_an_unsupported_field_that_does_not_concern_the_sandbox_lets_it_run() -> None:
    life = Life().apply(manifest(init_containers=(container("first", **RAW),)))
    assert life.kinds == ["SpecAccepted", "ContainerBlocked", "SandboxStartRequested"]


def test_a_pod_with_a_user_namespace_starts_no_sandbox() -> None:
    life = Life().apply(manifest(host_users=False))
    assert life.kinds == ["SpecAccepted", "SandboxBlocked", "ContainerBlocked"]
    assert life.reasons_and_texts[0][0] == "FailedCreatePodSandBox"
    assert (life.effects, life.due) == ({}, None)
    assert life.withdraw().kinds == ["TerminationRequested", "CleanupRequested"]
    assert life.answer("pod", signals.CleanedUp).state is None


def test_unexpected_results_are_ignored() -> None:
    life = running()
    life.when(signals.ContainerUp(subject="container/app", intent="start/u1/0/0", id="x", started_at=1)).then()
    life.when(signals.SandboxUp(subject="sandbox", intent="start/u1/0/0", id="x", started_at=1)).then()


@pytest.mark.parametrize("subject", ["sandbox", "container/app"])
def test_a_result_of_another_kind_is_ignored(subject: str) -> None:
    life = Life().apply(manifest())
    if subject != "sandbox":
        life.sandbox_up()
        life.answer(subject, signals.SpecKept).then()
        life.image_there()
    life.answer(subject, signals.SpecKept).then()


def test_a_due_that_came_too_early_changes_nothing() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="no")
    assert tuple(DECIDER.decide(life.state, Due(at=life.at), life.at)) == ()


def test_without_a_spec_nothing_is_outstanding() -> None:
    scene = Scene(DECIDER)
    assert (scene.effects, scene.due) == ({}, None)
    assert tuple(DECIDER.decide(scene.state, Due(at=0), 0)) == ()


def test_unavailable_volumes_are_retried_as_the_kubelet_does() -> None:
    """Source: pkg/volume/util/operationexecutor (FailedMount), goroutinemap/exponentialbackoff."""
    life = Life().apply(manifest(container("app"), container("log"))).sandbox_up().image_there("app").image_there("log")
    message = 'MountVolume.SetUp failed for volume "x" : hostPath type check failed: /x is not a directory'
    waits = []
    for _ in range(10):
        life.answer("container/app", signals.ContainerRefused, reason="FailedMount", message=message)
        life.then_kube_events(("FailedMount", message))
        assert [event.field_path for event in life.events if isinstance(event, Recorded)] == [""], "it is the pod's"
        one = life.state.container("app")
        assert one.phase == "start_failed"
        waits.append(one.retry_at - life.at)
        status = plain_status(life.state)["containerStatuses"][0]["state"]
        assert status == {"waiting": {"reason": "ContainerCreating"}}
        life.at = one.retry_at
        life.wake().image_there("app").then_kube_events()
    assert waits == [500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 122000, 122000]
    life.up("app")
    assert life.state.container("app").phase == "running"


def test_one_container_reports_volumes_for_which_several_wait() -> None:
    life = Life().apply(manifest(container("app"), container("log"))).sandbox_up().image_there("app").image_there("log")
    for name in ("app", "log"):
        life.answer(f"container/{name}", signals.ContainerRefused, reason="FailedMount", message="no volume")
        life.then_kube_events(*((("FailedMount", "no volume"),) if name == "app" else ()))
