"""Changes to the spec of a running pod: replacement in place, or a new sandbox."""

from __future__ import annotations

from msgspec import structs

from chronolet.pod import signals, wanted
from chronolet.pod.status.status import plain_status
from chronolet_schemas import pod, podspec
from tests.deciders.pod.life import POD, RAW, T0, Life, container, manifest, running, with_port


def test_the_same_spec_again_is_ignored() -> None:
    running().apply(manifest()).then()


def relabelled(**labels: str) -> podspec.Pod:
    """Return the pod of `manifest()`, with a change that replaces nothing."""
    one = manifest()
    return structs.replace(one, metadata=structs.replace(one.metadata, labels=labels))


def test_a_change_that_starts_nothing_is_stored_on_disk() -> None:
    life = running().apply(changed := relabelled(a="b"))
    assert life.kinds == ["SpecAccepted"]
    (effect,) = life.effects.values()
    assert isinstance(effect, wanted.KeepSpec)
    assert (effect.manifest, effect.origin.digest) == (changed, podspec.digest(changed))
    life.fail("spec", "disk full").then()
    life.then_kube_events(("FailedKeepSpec", "the changed spec cannot be stored: disk full"))
    life.apply(later := relabelled(a="c"))
    life.when(signals.SpecKept(subject="spec", intent=effect.intent)).then()
    life.kept().then(pod.SpecKept(pod=POD, uid="u1", digest=podspec.digest(later)))
    assert life.effects == {}


def test_a_change_is_stored_after_the_start_requested_before_it() -> None:
    life = Life().apply(manifest()).apply(relabelled(a="b"))
    assert list(life.effects) == ["sandbox"]
    life.sandbox_up().image_there()
    assert list(life.effects) == ["container/app"]
    life.up()
    assert list(life.effects) == ["spec"]
    assert life.withdraw().effects.keys() == {"container/app"}, "a terminating pod's spec is not stored"


def test_a_changed_container_is_replaced_in_place() -> None:
    life = running(container("app"), container("log"))
    life.at += 5000
    life.apply(manifest(container("app", "busybox:2"), container("log")))
    assert life.kinds == ["SpecAccepted", "ContainerStopRequested"]
    assert life.facts[1].reason == "SpecChanged"
    life.then_kube_events(("Killing", "Container app definition changed, will be restarted"))
    assert life.stopped("container/app").kinds == ["ContainerExited", "RestartScheduled", "ImageEnsureRequested"]
    assert life.effects["container/app"].image == "busybox:2"
    life.start("app")
    assert (life.state.container("app").attempt, life.state.container("log").attempt) == (1, 0)
    assert (life.state.accepted_at, life.state.sandbox.attempt) == (T0, 0)


def test_a_changed_container_is_replaced_under_any_policy() -> None:
    life = running(restart_policy="Never").apply(manifest(container(args=("x",)), restart_policy="Never")).stopped()
    assert life.kinds == ["ContainerExited", "RestartScheduled", "ImageEnsureRequested"]
    life.start()
    assert life.kept().effects == {}


def test_under_policy_never_a_changed_container_that_cannot_run_is_not_retried() -> None:
    life = running(restart_policy="Never").apply(manifest(container(args=("x",)), restart_policy="Never")).stopped()
    life.image_there().answer(
        "container/app", signals.ContainerRefused, reason="RunContainerError", message="no", id="app-1"
    )
    assert life.kinds == ["ContainerStartFailed", "SandboxStopRequested"]


def test_a_changed_definition_has_a_back_off_of_its_own() -> None:
    life = running().dies().start().dies()
    assert life.state.container("app").phase == "backing_off"
    life.apply(manifest(container(args=("better",))))
    assert life.kinds == ["SpecAccepted", "RestartScheduled", "ImageEnsureRequested"]
    life.start().dies()
    assert life.only(pod.RestartScheduled).back_off_seconds == 10


def test_another_image_is_pulled_immediately() -> None:
    life = Life().apply(manifest()).sandbox_up()
    assert life.apply(manifest(container(image="busybox:2"))).kinds == ["SpecAccepted", "ImageEnsureRequested"]
    life.answer("container/app", signals.ImageRefused, reason="ErrImagePull", message="no")
    assert life.apply(manifest(container(image="busybox:3"))).kinds == ["SpecAccepted", "ImageEnsureRequested"]
    life.answer("container/app", signals.ImageRefused, reason="ErrImagePull", message="no").wake()
    assert life.apply(manifest(container(image="busybox:4"))).kinds == ["SpecAccepted", "ImageEnsureRequested"]
    life.answer("container/app", signals.ImageRefused, reason="ErrImagePull", message="no")
    assert life.state.container("app").image_failures == 1


def test_another_definition_starts_immediately_after_a_failed_start() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there().fail("container/app")
    assert life.apply(manifest(container(args=("x",)))).kinds == ["SpecAccepted", "ImageEnsureRequested"]


def test_a_definition_that_changes_during_the_start_is_replaced_afterwards() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there().apply(manifest(container(args=("x",))))
    assert life.kinds == ["SpecAccepted"]
    assert life.up().kinds == ["ContainerStarted", "ContainerStopRequested"]


def test_another_host_port_needs_another_sandbox() -> None:
    life = Life().apply(with_port(8080)).sandbox_up().start().apply(with_port(8081))
    assert life.kinds == ["SpecAccepted", "ContainerStopRequested"]
    assert life.stopped().kinds == ["ContainerExited", "SandboxStopRequested"]
    assert not life.only(pod.SandboxStopRequested).finished
    assert life.answer("sandbox", signals.SandboxDown, id="sandbox-0").kinds == [
        "SandboxExited",
        "SandboxStartRequested",
    ]
    assert life.state.sandbox.attempt == 1
    assert life.sandbox_up().kinds == ["SandboxStarted", "RestartScheduled", "ImageEnsureRequested"]


def test_a_ready_image_waits_for_the_new_sandbox() -> None:
    life = running(container("log"), container("app")).dies("log").sandbox_dies().image_there("log")
    assert life.kinds == ["ImageReady"]
    life.stopped("container/app")
    assert "ContainerStartRequested" in life.sandbox_up().kinds


def test_a_ready_image_of_a_removed_container_is_not_started() -> None:
    life = running(container("log"), container("app")).dies("log").sandbox_dies().image_there("log")
    life.apply(manifest(container("log", "busybox:2"), container("app")))
    life.stopped("container/app").sandbox_up()
    assert life.effects["container/log"].image == "busybox:2"


def test_a_change_to_an_unsupported_field_stops_the_container_permanently() -> None:
    life = running().apply(manifest(container(**RAW)))
    assert life.kinds == ["SpecAccepted", "ContainerBlocked", "ContainerStopRequested"]
    assert life.stopped().kinds == ["ContainerExited"]
    assert (life.kept().effects, life.due) == ({}, None)
    assert life.apply(manifest()).kinds == ["SpecAccepted", "RestartScheduled", "ImageEnsureRequested"]


def test_a_change_to_a_user_namespace_also_stops_the_sandbox() -> None:
    life = running().apply(manifest(host_users=False)).stopped()
    assert life.kinds == ["ContainerExited", "SandboxStopRequested"]
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert (life.kept().effects, life.due) == ({}, None)


def test_a_removed_container_is_stopped_and_an_added_one_is_started() -> None:
    life = running(container("app"), container("old")).apply(manifest(container("app"), container("new")))
    assert life.kinds == ["SpecAccepted", "ImageEnsureRequested", "ContainerStopRequested"]
    life.then_kube_events(("Killing", "Stopping container old"))
    assert [one["name"] for one in plain_status(life.state)["containerStatuses"]] == ["app", "new"]
    assert life.stopped("container/old").kinds == ["ContainerExited"]
    assert life.state.container("old") is None
    life.start("new")
    assert life.kept().effects == {}


def test_a_removed_container_keeps_its_hook_and_grace_period() -> None:
    hook = podspec.LifecycleHandler(sleep=podspec.SleepAction(seconds=3))
    old = container("old", lifecycle=podspec.Lifecycle(pre_stop=hook))
    life = running(container("app"), old).apply(manifest(container("app")))
    assert life.kinds == ["SpecAccepted", "ContainerStopRequested", "HookRequested"]
    assert life.kept().effects == {}
    assert life.wake().kinds == ["HookEnded", "ContainerStopReleased"]
    assert life.at == T0 + 3000
    assert life.effects["container/old"].deadline == T0 + 30_000
    assert life.stopped("container/old").kinds == ["ContainerExited"]
    # If the pod is deleted in the meantime, its termination continues from this state.
    ending = running(container("app"), old).apply(manifest(container("app"))).withdraw()
    assert [one.container for one in ending.facts if isinstance(one, pod.ContainerStopRequested)] == ["app"]
    ending.wake()
    ending.stopped().stopped("container/old").end()
    assert ending.state is None


def test_a_container_added_back_while_it_stops_is_the_next_attempt() -> None:
    both = manifest(container("app"), container("old"))
    life = running(*both.spec.containers).apply(manifest(container("app"))).apply(both)
    assert life.stopped("container/old", 143).kinds == ["ContainerExited", "RestartScheduled", "ImageEnsureRequested"]
    assert life.start("old").facts[0].attempt == 1


def test_an_init_container_that_hangs_is_started_again_by_its_new_definition() -> None:
    life = Life().apply(manifest(container("app"), init_containers=(container("init"),))).sandbox_up().start("init")
    life.apply(manifest(container("app"), init_containers=(container("init", command=("true",)),)))
    assert life.kinds[:2] == ["SpecAccepted", "ContainerStopRequested"]
    life.kept().stopped("container/init", 137)
    assert life.kinds == ["ContainerExited", "RestartScheduled", "ImageEnsureRequested"]
    life.start("init").dies("init", 0).image_there()
    assert life.only(pod.ContainerStartRequested).container == "app"


def test_a_container_removed_during_its_start_is_stopped_once_it_runs() -> None:
    both = manifest(container("app"), container("old"))
    life = Life().apply(both).sandbox_up().start("app").image_there("old").apply(manifest(container("app")))
    assert life.up("old").kinds == ["ContainerStarted", "ContainerStopRequested"]
    life = Life().apply(both).sandbox_up().start("app").image_there("old").apply(manifest(container("app")))
    life.answer("container/old", signals.ContainerRefused, reason="CreateContainerError", message="no")
    assert life.kept().effects == {}
    assert (life.state.container("old"), life.due) == (None, None)


def test_the_exit_of_a_removed_container_is_forgotten() -> None:
    both = manifest(container("app"), container("old"))
    life = running(*both.spec.containers).dies("old").apply(manifest(container("app")))
    assert life.kinds == ["SpecAccepted"]
    assert life.state.container("old") is None
    assert set(life.effects) == {"spec"}
