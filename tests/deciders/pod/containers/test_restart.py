"""Exits and what follows: policies, CrashLoopBackOff, sandboxes that die, dead containers left to the collector."""

from __future__ import annotations

import pytest

from chronolet.pod import signals
from chronolet_schemas import pleg, pod
from tests.deciders.pod.life import POD, T0, Life, container, manifest, running


def times_reported(life: Life) -> int:
    return sum(reason == "BackOff" for reason, _ in life.reasons_and_texts)


def crash_loop(exits: int) -> Life:
    """Return a pod whose container has died `exits` times and waits for its restart."""
    life = running()
    for _ in range(exits - 1):
        life.dies().waits_out().start()
    return life.dies()


def test_the_first_restart_is_immediate_and_the_next_ones_wait() -> None:
    """A wait for a restart is reported as often as the kubelet syncs: every 60 to 90 s."""
    life = running()
    waits, tellings = [], []
    for attempt in range(8):
        life.dies(code=1)
        died, times = life.at, times_reported(life)
        while "container/app" not in life.effects:
            times += times_reported(life.wake())
        waits.append((life.at - died) // 1000)
        tellings.append(times)
        life.start()
        assert life.state.container("app").restarts == attempt + 1
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
    assert tellings == [0, 1, 1, 1, 2, 3, 4, 4]


def test_a_long_wait_is_reported_again_with_the_same_message() -> None:
    life = crash_loop(6)
    first, began = life.reasons_and_texts, life.at
    life.wake().then(pod.BackOffContinued(pod=POD, uid="u1", container="app", attempt=5, tell_again_at=began + 150_000))
    assert (life.reasons_and_texts, life.at, life.effects) == (first, began + 75_000, {})
    life.wake().then(pod.BackOffContinued(pod=POD, uid="u1", container="app", attempt=5, tell_again_at=0))
    assert life.due == began + 160_000


def test_missed_reports_of_a_back_off_are_not_sent_after_its_end() -> None:
    life = crash_loop(6)
    life.at += 400_000
    assert life.wake().kinds == ["ImageEnsureRequested"]
    life.start().then_kube_events(("Created", "Container created"), ("Started", "Container started"))
    assert life.due is None


def test_a_back_off_is_reported_immediately_and_shown() -> None:
    life = running().dies().start().dies()
    life.then_kube_events(("BackOff", "Back-off restarting failed container app in pod web_default(u1)"))
    one = life.state.container("app")
    assert (one.phase, one.reason, one.waited_seconds) == ("backing_off", "CrashLoopBackOff", 10)
    assert life.facts[-1] == pod.RestartScheduled(
        pod=POD,
        uid="u1",
        container="app",
        attempt=1,
        at=life.at + 10_000,
        back_off_seconds=10,
        next_back_off_seconds=20,
    )


def test_a_run_of_more_than_ten_minutes_resets_the_back_off() -> None:
    life = running().dies().start().dies().wake().start()
    life.dies(after=601_000)
    scheduled = life.only(pod.RestartScheduled)
    assert (scheduled.back_off_seconds, scheduled.next_back_off_seconds) == (0, 10)


def test_the_back_off_counts_from_the_end_of_the_run() -> None:
    life = running().dies().start()
    finished = life.at + 1
    life.at += 4000
    one = life.state.container("app")
    life.when(
        pleg.ContainerDied(
            pod=POD,
            uid="u1",
            container="app",
            attempt=1,
            id=one.id,
            exit_code=1,
            reason="Error",
            started_at=one.started_at,
            finished_at=finished,
        )
    )
    assert life.due == finished + 10_000


@pytest.mark.parametrize("hours", [-3, 3])
def test_the_back_off_counts_from_now_if_the_runtimes_clock_differs(hours: int) -> None:
    """The kernel's time does not go back with the machine's clock, so the runtime's time can be hours behind it. A
    runtime whose time is ahead is treated the same.
    """
    life = running().dies().start().dies().wake().start()
    one = life.state.container("app")
    life.when(
        pleg.ContainerDied(
            pod=POD,
            uid="u1",
            container="app",
            attempt=2,
            id=one.id,
            exit_code=1,
            reason="Error",
            started_at=one.started_at,
            finished_at=life.at + hours * 3_600_000,
        )
    )
    scheduled = life.only(pod.RestartScheduled)
    assert (scheduled.back_off_seconds, scheduled.next_back_off_seconds) == (20, 40)
    assert life.due == life.at + 20_000


@pytest.mark.parametrize(
    ("policy", "code", "restarts"),
    [("Always", 0, True), ("OnFailure", 1, True), ("OnFailure", 0, False), ("Never", 1, False), ("Never", 0, False)],
)
def test_the_policy_decides_about_a_restart(policy: str, code: int, restarts: bool) -> None:
    life = running(restart_policy=policy).dies(code=code)
    assert ("RestartScheduled" in life.kinds) == restarts
    assert ("SandboxStopRequested" in life.kinds) != restarts


def test_a_finished_pod_stops_its_sandbox_and_stays() -> None:
    life = running(restart_policy="Never").dies(code=0)
    assert life.only(pod.SandboxStopRequested).finished
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0").then(
        pod.SandboxExited(pod=POD, uid="u1", attempt=0, id="sandbox-0", exit_code=0, finished_at=life.at)
    )
    assert (life.effects, life.due) == ({}, None)
    assert life.state.container("app").exit.exit_code == 0


def test_dead_containers_are_left_to_the_collector() -> None:
    life = running().dies().start().dies()
    assert life.effects == {}
    assert life.state.container("app").exit.id == "app-1"


def test_a_dead_sandbox_ends_its_containers() -> None:
    life = running(container("app"), container("log")).sandbox_dies()
    assert life.kinds == ["SandboxExited", "ContainerStopRequested", "ContainerStopRequested"]
    assert {event.reason for event in life.facts[1:]} == {"SandboxGone"}
    life.stopped("container/app", 137)
    assert life.kinds == ["ContainerExited"]
    assert life.stopped("container/log", 0).kinds == [
        "ContainerExited",
        "SandboxStartRequested",
    ]
    life.then_kube_events(("SandboxChanged", "Pod sandbox changed, it will be killed and re-created."))
    life.sandbox_up()
    assert life.kinds.count("RestartScheduled") == 2
    life.start("app").start("log")
    assert [one.attempt for one in life.state.containers] == [1, 1]
    start = life.state.sandbox
    assert (start.attempt, start.id) == (1, "sandbox-1")


def test_a_sandbox_that_dies_young_is_not_replaced_immediately() -> None:
    life = running().sandbox_dies(after=1000).stopped()
    assert life.kinds == ["ContainerExited"]
    assert life.due == T0 + 10_000
    assert "SandboxStartRequested" in life.wake().kinds


def test_under_policy_never_a_dead_sandbox_ends_the_pod() -> None:
    life = running(restart_policy="Never").sandbox_dies().stopped(code=137)
    assert life.kinds == ["ContainerExited"]
    assert (life.effects, life.due) == ({}, None)


def test_a_start_pending_at_the_death_of_the_sandbox_is_awaited() -> None:
    life = running(container("app"), container("log")).dies("log").image_there("log").sandbox_dies()
    life.stopped("container/app")
    assert "container/log" in life.effects
    assert life.up("log").kinds == ["ContainerStarted", "ContainerStopRequested"]
    assert "SandboxStartRequested" in life.stopped("container/log").kinds


def test_a_refused_stop_is_retried() -> None:
    life = running().sandbox_dies()
    deadline = life.effects["container/app"].deadline
    life.answer("container/app", signals.StopRefused, message="daemon is down")
    life.then_kube_events(("FailedKillPod", "error killing pod: daemon is down"))
    assert life.effects == {}
    assert life.wake().kinds == ["ContainerStopRequested"]
    life.then_kube_events()
    assert life.effects["container/app"].deadline == deadline
    assert "SandboxStartRequested" in life.stopped().kinds


def test_a_sandbox_that_cannot_be_stopped_is_retried() -> None:
    life = running(restart_policy="Never").dies(code=0).fail("sandbox", "stuck")
    life.then_kube_events(("FailedKillPod", "error killing pod: stuck"))
    assert life.effects == {}
    assert life.wake().kinds == ["SandboxStopRequested"]
    assert life.only(pod.SandboxStopRequested).finished
    assert life.answer("sandbox", signals.SandboxDown, id="sandbox-0").state.sandbox.phase == "dead"


def test_a_clock_set_back_extends_no_back_off() -> None:
    life = running().dies().start().dies()
    life.at -= 86_400_000
    assert life.apply(manifest(container("app"), container("log"))).kinds == [
        "SpecAccepted",
        "ImageEnsureRequested",
        "ImageEnsureRequested",
    ]
    assert life.state.container("app").phase == "pulling"


def test_an_oom_kill_is_kept_as_the_reason() -> None:
    life = running().dies(code=137, reason="OOMKilled")
    assert life.state.container("app").exit.reason == "OOMKilled"
    assert manifest().key == POD
