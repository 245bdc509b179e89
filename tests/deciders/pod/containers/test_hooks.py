"""Hooks after the start and before the stop; the order in which containers stop; termination messages."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.pod import signals, wanted
from chronolet.pod.status.status import plain_status
from chronolet_schemas import kube_events, pod
from chronolet_schemas.podspec import (
    Container,
    ContainerPort,
    ExecAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    SleepAction,
)
from tests.deciders.pod.life import POD, T0, Life, container, manifest, running

EXEC = LifecycleHandler(exec=ExecAction(command=("warm", "up")))
SLEEP = LifecycleHandler(sleep=SleepAction(seconds=5))


def hooked(
    name: str = "app", *, after: LifecycleHandler | None = None, before: LifecycleHandler | None = None, **fields: Any
) -> Container:
    return container(name, lifecycle=Lifecycle(post_start=after, pre_stop=before), **fields)


def http(port: int | str | None, **fields: Any) -> LifecycleHandler:
    return LifecycleHandler(http_get=HTTPGetAction(port=port, **fields))


def prepared(life: Life, name: str = "app", exec_id: str = "exec-1") -> Life:
    return life.answer(f"hook/{name}", signals.HookPrepared, exec_id=exec_id)


def began(*containers: Container, **spec: Any) -> Life:
    """Return a pod whose first container has just started."""
    return Life().apply(manifest(*containers, **spec)).sandbox_up().start(containers[0].name)


def flags(life: Life, index: int = 0) -> tuple[bool, bool]:
    one = plain_status(life.state)["containerStatuses"][index]
    return one["started"], one["ready"]


# -- postStart ---------------------------------------------------------------------------------------------------------


def test_an_exec_is_created_and_recorded_before_it_starts() -> None:
    life = began(hooked(after=EXEC))
    life.then(
        pod.ContainerStarted(pod=POD, uid="u1", container="app", attempt=0, id="app-0", started_at=T0),
        pod.HookRequested(
            pod=POD, uid="u1", container="app", attempt=0, id="app-0", hook="PostStart", handler=EXEC, requested_at=T0
        ),
    )
    assert life.effects["hook/app"] == wanted.PrepareHook(
        subject="hook/app",
        intent="PostStart/app-0",
        pod=POD,
        uid="u1",
        container="app",
        attempt=0,
        id="app-0",
        hook="PostStart",
        command=("warm", "up"),
    )
    assert prepared(life).kinds == ["HookPrepared"]
    run = life.effects["hook/app"]
    assert isinstance(run, wanted.RunHook)
    assert (run.intent, run.exec_id, run.deadline) == ("PostStart/app-0/exec-1", "exec-1", 0)
    assert flags(life) == (False, False)
    assert life.answer("hook/app", signals.HookDone).kinds == ["HookEnded"]
    assert (life.effects, flags(life)) == ({}, (True, True))


def test_the_next_container_starts_when_the_hook_has_ended() -> None:
    life = began(hooked(after=EXEC), container("log"))
    life.image_there("log")
    assert life.state.container("log").phase == "image_ready"
    assert prepared(life).answer("hook/app", signals.HookDone).kinds == ["HookEnded", "ContainerStartRequested"]


@pytest.mark.parametrize(
    "fails",
    [
        lambda life: life.answer("hook/app", signals.HookRefused, message="no such file"),
        lambda life: life.fail("hook/app", "no such file"),
        lambda life: prepared(life).answer("hook/app", signals.HookDone, failed=True, message="no such file"),
        lambda life: prepared(life).answer("hook/app", signals.HookUnfinished),
    ],
)
def test_a_hook_that_fails_ends_its_container(fails: Any) -> None:
    life = fails(began(hooked(after=EXEC)))
    assert life.kinds == ["HookEnded", "ContainerStopRequested"]
    assert life.only(pod.ContainerStopRequested).reason == "FailedPostStartHook"
    if life.only(pod.HookEnded).outcome == "Failed":
        assert life.reasons_and_texts == (
            ("FailedPostStartHook", "PostStartHook failed"),
            ("Killing", "FailedPostStartHook"),
        )
    life.stopped(code=143)
    assert life.kinds[:2] == ["ContainerExited", "RestartScheduled"]
    one = life.state.container("app")
    assert (one.reason, one.phase) == ("PostStartHookError", "pulling")
    waiting = plain_status(life.state)["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "PostStartHookError"
    life.start()
    assert life.kinds == ["ContainerStarted", "HookRequested"]
    fails(life).stopped(code=143)
    assert life.state.container("app").reason == "CrashLoopBackOff"


def test_containers_after_a_sidecar_with_a_failed_hook_wait_for_its_restart() -> None:
    life = Life().apply(manifest(init_containers=(hooked("proxy", after=EXEC, restart_policy="Always"),))).sandbox_up()
    life.start("proxy").image_there("app")
    life.fail("hook/proxy")
    assert (life.kinds, list(life.effects)) == (["HookEnded", "ContainerStopRequested"], ["container/proxy"])
    life.stopped("container/proxy", 1).start("proxy")
    assert life.state.container("app").phase == "image_ready"
    assert prepared(life, "proxy").answer("hook/proxy", signals.HookDone).kinds == [
        "HookEnded",
        "ContainerStartRequested",
    ]


def test_an_unknown_outcome_is_no_failure_and_not_retried() -> None:
    life = prepared(began(hooked(after=EXEC)))
    life.answer("hook/app", signals.HookOutcomeUnknown, message="no such exec")
    assert (life.kinds, life.effects) == (["HookEnded"], {})
    life.then_kube_events(("FailedPostStartHook", "the outcome of the PostStart hook is unknown; it is not run again"))
    assert flags(life) == (True, True)
    again = prepared(began(hooked(after=EXEC)))
    assert again.fail("hook/app").only(pod.HookEnded).outcome == "Unknown"


def test_a_sleep_hook_is_a_timer_without_effect() -> None:
    life = began(hooked(after=SLEEP), container("log"))
    assert ("hook/app" in life.effects, life.due) == (False, T0 + 5000)
    assert life.wake().only(pod.HookEnded).outcome == "Succeeded"


def test_a_clock_set_back_extends_no_sleep() -> None:
    life = began(hooked(after=SLEEP))
    life.at -= 60_000
    assert life.apply(manifest(hooked(after=SLEEP), container("log"))).state.container("app").hook is not None


def test_the_death_of_a_container_ends_its_hook() -> None:
    life = prepared(began(hooked(after=EXEC))).dies(code=1)
    assert "hook/app" not in life.effects
    assert life.state.container("app").hook is None


def test_a_stop_ends_the_post_start_hook() -> None:
    life = prepared(began(hooked(after=EXEC))).withdraw()
    assert list(life.effects) == ["container/app"]


def test_a_container_restarted_from_outside_has_no_hook() -> None:
    life = running(hooked(after=SLEEP)).wake().dies(code=1).start().wake().dies(code=1)
    life.at += 10
    life.runs("app-1", attempt=1)
    assert (life.kinds, life.state.container("app").phase) == (["ContainerStarted"], "running")


def test_a_hook_added_to_a_running_container_is_not_run() -> None:
    assert running().apply(manifest(hooked(after=EXEC))).effects.keys() == {"spec"}


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("port", "number"), [(81, 81), ("web", 8080), (None, 80), ("", 80)])
def test_a_request_goes_to_a_port_by_number_or_name(port: int | str | None, number: int) -> None:
    ports = (ContainerPort(name="web", container_port=8080),)
    run = began(hooked(after=http(port, path="/warm"), ports=ports)).effects["hook/app"]
    assert isinstance(run, wanted.RunHook)
    assert (run.port, run.sandbox_ip, run.exec_id) == (number, "10.1.0.2", "")
    assert run.http is not None
    assert run.http.path == "/warm"


def test_a_worker_that_raises_fails_the_hook() -> None:
    life = began(hooked(after=http(80))).fail("hook/app", "refused")
    ended = life.only(pod.HookEnded)
    assert (ended.outcome, ended.message) == ("Failed", "refused")


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (http("nowhere"), "couldn't find port: nowhere in the container's ports"),
        (LifecycleHandler(), "invalid handler: neither exec, httpGet nor sleep"),
    ],
)
def test_a_handler_that_cannot_run_fails_the_hook(handler: LifecycleHandler, message: str) -> None:
    life = running(hooked(before=handler)).withdraw()
    assert "hook/app" not in life.effects
    ended = life.only(pod.HookEnded)
    assert (ended.outcome, ended.message) == ("Failed", message)


# -- preStop -----------------------------------------------------------------------------------------------------------


def test_the_stop_signal_waits_for_the_pre_stop_hook() -> None:
    life = running(hooked(before=EXEC)).withdraw()
    assert life.kinds == ["TerminationRequested", "ContainerStopRequested", "HookRequested"]
    requested = life.only(pod.HookRequested)
    assert (requested.hook, requested.deadline) == ("PreStop", T0 + 30_000)
    assert list(life.effects) == ["hook/app"]
    life.at += 7000
    assert prepared(life).effects["hook/app"].deadline == T0 + 30_000  # type: ignore[attr-defined]
    assert life.answer("hook/app", signals.HookDone).kinds == ["HookEnded", "ContainerStopReleased"]
    stop = life.effects["container/app"]
    assert isinstance(stop, wanted.StopContainer)
    assert stop.deadline == T0 + 30_000


def test_a_hook_that_uses_up_the_grace_period_leaves_two_seconds() -> None:
    life = prepared(running(hooked(before=EXEC)).withdraw(grace=10))
    assert life.due == T0 + 10_000
    assert life.wake().kinds == ["HookEnded", "ContainerStopReleased"]
    assert life.only(pod.HookEnded).outcome == "Unfinished"
    assert life.reasons_and_texts == ()
    assert life.only(pod.ContainerStopReleased).deadline == T0 + 12_000


def test_a_failed_pre_stop_hook_is_only_reported() -> None:
    life = prepared(running(hooked(before=EXEC)).withdraw())
    life.answer("hook/app", signals.HookDone, failed=True, message="secret").then_kube_events(
        ("FailedPreStopHook", "PreStopHook failed")
    )
    assert life.kinds == ["HookEnded", "ContainerStopReleased"]


def test_a_second_deletion_with_a_shorter_grace_period_shortens_the_hook() -> None:
    life = prepared(running(hooked(before=EXEC)).withdraw(grace=60))
    before = life.effects["hook/app"].intent
    life.withdraw(grace=5)
    assert life.effects["hook/app"].intent == before, "it is started once"
    assert life.due == T0 + 5000
    life.wake()
    assert life.only(pod.ContainerStopReleased).deadline == T0 + 7000


def test_a_sleep_hook_delays_the_stop_signal() -> None:
    life = running(hooked(before=SLEEP)).withdraw()
    assert life.due == T0 + 5000
    assert life.wake().kinds == ["HookEnded", "ContainerStopReleased"]


def test_a_sleep_is_limited_to_the_grace_period() -> None:
    life = running(hooked(before=SLEEP)).withdraw(grace=3).wake()
    assert life.only(pod.HookEnded).outcome == "Unfinished"


def test_a_hook_runs_before_a_restart_for_a_changed_definition() -> None:
    life = running(hooked(before=EXEC)).apply(manifest(hooked(before=EXEC, args=("x",))))
    assert life.state.container("app").stop.reason == "SpecChanged"
    prepared(life).answer("hook/app", signals.HookDone).stopped()
    assert life.start().state.container("app").phase == "running"


def test_a_container_that_dies_during_its_last_hook_is_dead() -> None:
    life = prepared(running(hooked(before=EXEC)).withdraw()).dies(code=0)
    assert life.kinds == ["ContainerExited", "SandboxStopRequested"]


def test_a_stop_that_is_refused_does_not_run_the_hook_again() -> None:
    life = prepared(running(hooked(before=EXEC)).withdraw()).answer("hook/app", signals.HookDone)
    life.answer("container/app", signals.StopRefused, message="no").wake()
    assert life.kinds == ["ContainerStopRequested"]
    assert list(life.effects) == ["container/app"]


def test_a_clock_set_back_extends_no_grace_period() -> None:
    life = prepared(running(hooked(before=EXEC)).withdraw(grace=10))
    life.at -= 100_000
    life.answer("hook/app", signals.HookDone)
    assert life.only(pod.ContainerStopReleased).deadline == life.at + 10_000


def test_results_without_a_request_are_ignored() -> None:
    life = began(hooked(after=EXEC))
    assert life.answer("hook/app", signals.SpecKept).kinds == []
    silent = running_unread(restart_policy="Never").dies(code=0)
    assert silent.answer("exit/app-0", signals.SpecKept).kinds == []


# -- order -------------------------------------------------------------------------------------------------------------


def sidecar(name: str, **fields: Any) -> Container:
    return hooked(name, restart_policy="Always", **fields)


def test_sidecars_stop_after_the_apps_in_reverse_order() -> None:
    life = Life().apply(manifest(init_containers=(sidecar("one"), sidecar("two", before=EXEC)))).sandbox_up()
    life.start("one").start("two").start("app").withdraw()
    assert {one.name: one.stop.held for one in life.state.containers} == {"one": True, "two": True, "app": False}
    assert set(life.effects) == {"hook/two", "container/app"}, "hooks run immediately, signals wait"
    assert life.stopped("container/app").kinds == ["ContainerExited"]
    prepared(life, "two").answer("hook/two", signals.HookDone)
    assert set(life.effects) == {"container/two"}
    assert life.stopped("container/two").kinds == ["ContainerExited", "ContainerStopReleased"]
    life.stopped("container/one").end()
    assert life.state is None


def test_a_held_stop_is_released_at_the_end_of_its_grace_period() -> None:
    life = Life().apply(manifest(init_containers=(sidecar("one"),))).sandbox_up().start("one").start("app")
    life.withdraw(grace=4)
    assert life.due == T0 + 4000
    assert life.wake().kinds == ["ContainerStopReleased"]
    assert life.state.container("one").stop.deadline == T0 + 6000


def test_a_changed_sidecar_waits_for_no_other() -> None:
    life = Life().apply(manifest(init_containers=(sidecar("one"),))).sandbox_up().start("one").start("app")
    life.apply(manifest(init_containers=(sidecar("one", args=("x",)),)))
    assert "container/one" in life.effects


# -- pod deadline ------------------------------------------------------------------------------------------------------


def test_a_pod_past_its_deadline_fails_permanently() -> None:
    life = running(active_deadline_seconds=3600)
    assert life.due == T0 + 3_600_000
    assert life.wake().kinds == ["PodFailed", "ContainerStopRequested"]
    life.then_kube_events(
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
        ("Killing", "Stopping container app"),
    )
    assert life.recorded[0] == kube_events.Recorded(
        object_kind="Pod",
        namespace="default",
        name="web",
        uid="u1",
        severity="Normal",
        reason="DeadlineExceeded",
        message="Pod was active on the node longer than the specified deadline",
    )
    assert life.stopped(code=143).kinds == ["ContainerExited", "SandboxStopRequested"]
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert (life.effects, life.due) == ({}, None)
    status = plain_status(life.state)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    life.withdraw()
    assert life.answer("pod", signals.CleanedUp).state is None


def test_running_containers_of_a_failed_pod_are_stopped() -> None:
    life = running(active_deadline_seconds=5).wake().stopped(code=143)
    assert life.runs("app-1", attempt=1).kinds == ["StrayFound", "ContainerStopRequested"]


def test_a_deadline_during_a_restart_still_reads_the_termination_message() -> None:
    life = Life(reads=False).apply(manifest(active_deadline_seconds=5)).sandbox_up().start().dies().wake()
    assert life.kinds == ["PodFailed", "SandboxStopRequested"]
    assert life.only(pod.SandboxStopRequested).finished
    assert set(life.effects) == {"sandbox", "exit/app-0"}


def test_a_finished_pod_has_no_deadline() -> None:
    life = running(active_deadline_seconds=3600, restart_policy="Never").dies(code=0)
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert life.due is None


def test_a_deadline_applies_to_a_pod_that_never_ran() -> None:
    life = Life().apply(manifest(active_deadline_seconds=1)).sandbox_up().wake()
    assert life.kinds == ["PodFailed", "SandboxStopRequested"]
    assert list(life.effects) == ["sandbox"]


def test_a_sandbox_start_pending_at_the_deadline_is_awaited() -> None:
    life = Life().apply(manifest(active_deadline_seconds=1)).wake()
    assert life.kinds == ["PodFailed"]
    assert life.sandbox_up().kinds == ["SandboxStarted", "SandboxStopRequested"]


# -- termination messages ----------------------------------------------------------------------------------------------


def running_unread(**spec: Any) -> Life:
    return Life(reads=False).apply(manifest(**spec)).sandbox_up().start()


def test_the_termination_message_is_read_and_shown() -> None:
    life = running_unread(restart_policy="Never").dies(code=2)
    assert life.effects["exit/app-0"] == wanted.ReadExit(
        subject="exit/app-0",
        intent="read/app-0",
        pod=POD,
        uid="u1",
        container="app",
        attempt=0,
        id="app-0",
        path="/dev/termination-log",
        policy="File",
        exit_code=2,
    )
    life.answer("exit/app-0", signals.ExitRead, message="disk full").then(
        pod.ExitRead(pod=POD, uid="u1", container="app", attempt=0, id="app-0", message="disk full")
    )
    assert "exit/app-0" not in life.effects
    terminated = plain_status(life.state)["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["reason"], terminated["message"]) == ("Error", "disk full")


def test_termination_messages_share_the_size_limit_of_a_status() -> None:
    others = [container(f"c{number}") for number in range(5)]
    life = Life(reads=False).apply(manifest(container("app"), *others, restart_policy="Never")).sandbox_up()
    life.start("app").dies(code=2).answer("exit/app-0", signals.ExitRead, message="x" * 2047 + "\u00e4" + "y" * 9)
    (shown,) = [one for one in plain_status(life.state)["containerStatuses"] if one["name"] == "app"]
    # 12 KiB for six; a character that would be cut in two is dropped.
    assert shown["state"]["terminated"]["message"] == "x" * 2047


def test_an_oom_kill_may_be_detected_later() -> None:
    life = running_unread(restart_policy="Never").dies(code=137)
    life.answer("exit/app-0", signals.ExitRead, oom_killed=True)
    assert life.state.container("app").exit.reason == "OOMKilled"


def test_a_restart_does_not_wait_for_the_termination_message() -> None:
    life = running_unread().dies()
    assert list(life.effects) == ["container/app"]
    life.image_there()
    assert list(life.effects) == ["container/app"]
    life.up()
    assert list(life.effects) == ["exit/app-0"]
    assert life.answer("exit/app-0", signals.ExitRead, message="m").state.container("app").exit.message == "m"


def test_the_clean_up_waits_for_the_termination_message() -> None:
    life = running_unread().withdraw().stopped().answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert list(life.effects) == ["exit/app-0"]
    life.fail("exit/app-0")
    assert life.kinds == ["ExitRead", "CleanupRequested"]


def test_the_message_of_an_older_exit_is_ignored() -> None:
    life = running_unread().dies().start().dies()
    before = life.state
    event = pod.ExitRead(pod=POD, uid="u1", container="app", attempt=0, id="app-0", message="m")
    assert life.decider.evolve(before, event) == before
