"""The end of a pod, and the pod that follows it."""

from __future__ import annotations

from chronolet.pod import signals, wanted
from chronolet_schemas import manifests, pod, podspec
from tests.deciders.pod.life import POD, T0, Life, container, manifest, running


def test_containers_stop_first_then_the_sandbox_then_everything_is_removed() -> None:
    life = running(container("app"), container("log")).withdraw()
    assert life.kinds == ["TerminationRequested", "ContainerStopRequested", "ContainerStopRequested"]
    assert [event.reason for event in life.facts] == ["Deleted"] * 3
    life.then_kube_events(("Killing", "Stopping container app"), ("Killing", "Stopping container log"))
    stop = life.effects["container/app"]
    assert isinstance(stop, wanted.StopContainer)
    assert (stop.id, stop.grace_period_seconds, stop.deadline) == ("app-0", 30, T0 + 30_000)
    assert life.stopped("container/app").kinds == ["ContainerExited"]
    assert life.stopped("container/log").kinds == ["ContainerExited", "SandboxStopRequested"]
    assert not life.only(pod.SandboxStopRequested).finished
    assert life.answer("sandbox", signals.SandboxDown, id="sandbox-0").kinds == ["SandboxExited", "CleanupRequested"]
    assert isinstance(life.effects["pod"], wanted.Cleanup)
    life.answer("pod", signals.CleanedUp).then(pod.PodEnded(pod=POD, uid="u1"))
    assert life.state is None


def test_a_container_has_at_least_two_seconds_to_stop() -> None:
    stop = running().withdraw(grace=0).effects["container/app"]
    assert isinstance(stop, wanted.StopContainer)
    assert (stop.grace_period_seconds, stop.deadline) == (2, T0 + 2000)


def test_a_shorter_grace_period_applies_and_a_longer_one_does_not() -> None:
    life = running().withdraw(grace=60)
    before = life.effects["container/app"].intent
    assert life.withdraw(grace=90).kinds == []
    assert life.withdraw(grace=5).kinds == ["TerminationRequested", "ContainerStopRequested"]
    life.then_kube_events()
    assert life.effects["container/app"].intent != before
    assert life.effects["container/app"].deadline == T0 + 5000


def test_a_pending_start_is_looked_up_and_its_container_is_stopped() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there()
    begun = life.effects["container/app"]
    life.withdraw()
    assert isinstance(life.effects["container/app"], wanted.FindContainer)
    life.when(signals.ContainerUp(subject=begun.subject, intent=begun.intent, id="app-0", started_at=life.at)).then()
    assert life.up().kinds == ["ContainerStarted", "ContainerStopRequested"]
    life.stopped().end()
    assert life.state is None


def test_nothing_starts_once_the_removal_was_requested() -> None:
    """No start is outstanding, whatever was requested before, so a restarted process starts nothing."""
    starts = (wanted.StartSandbox, wanted.StartContainer, wanted.EnsureImage)
    sandbox = Life().apply(manifest()).withdraw()
    assert isinstance(sandbox.effects["sandbox"], wanted.FindSandbox)
    assert sandbox.answer("sandbox", signals.SandboxRefused, message=wanted.NOT_BEGUN).kinds == [
        "SandboxStartFailed",
        "CleanupRequested",
    ]
    assert sandbox.recorded == ()
    started = Life().apply(manifest()).sandbox_up().image_there().withdraw()
    started.answer("container/app", signals.ContainerRefused, reason="CreateContainerError", message=wanted.NOT_BEGUN)
    assert started.kinds == ["ContainerStartFailed", "SandboxStopRequested"]
    assert started.recorded == ()
    backing_off = running().dies().start().dies().withdraw()
    waiting = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="no").withdraw()
    pulling = Life().apply(manifest()).sandbox_up().withdraw()
    for life in (sandbox, started, backing_off, waiting, pulling):
        life.at += 3_600_000
        life.wake() if life.due is not None else None
        assert not any(isinstance(one, starts) for one in life.effects.values())


def test_a_lookup_that_fails_or_finds_a_dead_container() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there().withdraw().fail("container/app")
    assert life.kinds == ["ContainerStartFailed", "SandboxStopRequested"]
    dead = Life().apply(manifest()).withdraw().answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert dead.kinds == ["SandboxStarted", "SandboxExited", "CleanupRequested"]
    failed = Life().apply(manifest()).withdraw().fail("sandbox")
    assert failed.kinds == ["SandboxStartFailed", "CleanupRequested"]


def test_a_pending_pull_is_cancelled() -> None:
    life = Life().apply(manifest()).sandbox_up().withdraw()
    assert life.kinds == ["TerminationRequested", "SandboxStopRequested"]
    assert list(life.effects) == ["sandbox"]


def test_a_pending_sandbox_start_is_awaited() -> None:
    life = Life().apply(manifest()).withdraw()
    assert life.kinds == ["TerminationRequested"]
    assert life.sandbox_up().kinds == ["SandboxStarted", "SandboxStopRequested"]
    life.end()
    assert life.state is None


def test_a_start_that_fails_during_the_end_needs_no_stop() -> None:
    life = Life().apply(manifest()).sandbox_up().image_there().withdraw().fail("container/app")
    assert life.kinds == ["ContainerStartFailed", "SandboxStopRequested"]


def test_a_refused_stop_is_retried_during_termination() -> None:
    life = running().withdraw().answer("container/app", signals.StopRefused, message="no")
    assert life.wake().kinds == ["ContainerStopRequested"]
    life.stopped().fail("sandbox")
    assert life.wake().kinds == ["SandboxStopRequested"]
    life.end()
    assert life.state is None


def test_a_failed_clean_up_is_retried() -> None:
    life = running(restart_policy="Never").dies(code=0).answer("sandbox", signals.SandboxDown, id="sandbox-0")
    life.withdraw()
    first = life.effects["pod"].intent
    life.answer("pod", signals.CleanupRefused, message="busy").then_kube_events(
        ("FailedKillPod", "error killing pod: busy")
    )
    assert life.effects == {}
    assert life.wake().kinds == ["CleanupRequested"]
    assert life.effects["pod"].intent != first
    assert life.fail("pod").kinds == ["CleanupFailed"]
    assert life.wake().answer("pod", signals.CleanedUp).state is None


def test_an_unfit_result_of_the_clean_up_is_ignored() -> None:
    life = Life().apply(manifest(host_users=False)).withdraw()
    life.answer("pod", signals.SpecKept).then()


def test_a_changed_file_replaces_the_pod() -> None:
    new = manifest(container("app", "busybox:2"))
    life = running().withdraw()
    life.apply(new, uid="u2", source="file:/x").then(
        pod.SuccessorAwaits(
            pod=POD, uid="u1", successor="u2", source="file:/x", digest=podspec.digest(new), manifest=new
        )
    )
    life.stopped().answer("sandbox", signals.SandboxDown, id="sandbox-0")
    life.answer("pod", signals.CleanedUp)
    assert life.kinds == ["PodEnded", "SpecAccepted", "SandboxStartRequested"]
    assert (life.state.uid, life.state.source, life.state.successor) == ("u2", "file:/x", None)
    assert life.effects["sandbox"].intent.startswith("start/u2/")
    assert life.sandbox_up().start().state.container("app").attempt == 0


def test_a_successor_without_a_withdrawal_also_ends_the_old_pod() -> None:
    life = running().apply(manifest(), uid="u2")
    assert life.kinds == ["SuccessorAwaits", "TerminationRequested", "ContainerStopRequested"]
    assert life.facts[1].reason == "Replaced"


def test_a_successor_may_be_withdrawn_and_replaced() -> None:
    life = running().withdraw().apply(manifest(), uid="u2").apply(manifest(), uid="u3")
    assert life.withdraw("u2").kinds == []
    assert life.withdraw("u3").kinds == ["SuccessorAwaits"]
    life.stopped().end()
    assert life.state is None


def test_a_restored_file_starts_its_pod_again() -> None:
    life = running().withdraw().apply(manifest())
    assert life.kinds == ["SuccessorAwaits"]
    life.stopped().end()
    assert (life.state.uid, life.kinds[:2]) == ("u1", ["PodEnded", "SpecAccepted"])


def test_a_file_added_and_removed_during_the_termination_has_no_pod() -> None:
    life = running().withdraw().apply(manifest()).withdraw()
    assert life.kinds == ["SuccessorAwaits"]
    life.stopped().end()
    assert life.state is None


def test_a_withdrawal_of_another_uid_is_ignored() -> None:
    running().withdraw("u0").then()


def test_a_termination_during_a_back_off() -> None:
    life = running().dies().start().dies().withdraw()
    assert life.kinds == ["TerminationRequested", "SandboxStopRequested"]
    assert life.due is None
    life.when(manifests.PodWithdrawn(pod=POD, uid="u1", source="apply")).then()
