"""Messages from pleg: the pod's own containers, outdated messages, and strays."""

from __future__ import annotations

from chronolet.pod import signals
from chronolet.pod.status.status import plain_status
from chronolet_schemas import pleg, pod
from tests.deciders.pod.life import POD, T0, Life, container, manifest, running, with_port


def starting() -> Life:
    return Life().apply(manifest()).sandbox_up().image_there()


def died(life: Life, *, started_at: int, container_id: str = "app-0", attempt: int = 0, name: str = "app") -> Life:
    return life.when(
        pleg.ContainerDied(
            pod=POD,
            uid="u1",
            container=name,
            attempt=attempt,
            id=container_id,
            exit_code=1,
            reason="Error",
            started_at=started_at,
            finished_at=life.at,
        )
    )


def test_pleg_may_report_a_start_before_the_effect_does() -> None:
    life = starting()
    intent = life.effects["container/app"].intent
    assert life.runs("app-0").kinds == ["ContainerStarted"]
    life.when(signals.ContainerUp(subject="container/app", intent=intent, id="app-0", started_at=life.at)).then()
    life.runs("app-0").then()


def test_pleg_may_report_an_exit_before_the_effect_reports_the_start() -> None:
    life = died(starting(), started_at=starting().at)
    assert life.kinds[:2] == ["ContainerStarted", "ContainerExited"]


def test_a_container_that_never_ran_is_reported_by_the_effect() -> None:
    died(starting(), started_at=0).then()


def test_messages_about_an_earlier_life_under_the_same_uid_are_ignored() -> None:
    life = starting()
    died(life, started_at=life.at - 1).then()
    life.runs("app-0", started_at=life.at - 1).then()
    early = Life().apply(manifest())
    died(early, started_at=early.at - 1, container_id="sandbox-x", name=pleg.SANDBOX).then()


def test_exits_of_other_attempts_are_ignored() -> None:
    life = running()
    died(life, started_at=1, container_id="other").then()
    died(life, started_at=1, name="unknown").then()
    died(life, started_at=1, container_id="other", name=pleg.SANDBOX).then()
    died(life, started_at=1, attempt=7, name=pleg.SANDBOX).then()


def test_a_sandbox_may_die_before_its_start_is_reported() -> None:
    life = Life().apply(manifest())
    died(life, started_at=life.at, container_id="sandbox-0", name=pleg.SANDBOX)
    assert life.kinds == ["SandboxStarted", "SandboxExited"]


def test_the_removal_of_a_leftover_sandbox_is_not_the_death_of_the_new_one() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="cut off").wake()
    died(life, started_at=0, container_id="sandbox-never-started", name=pleg.SANDBOX).then()
    assert life.runs("sandbox-0", pleg.SANDBOX).sandbox_up().state.sandbox.phase == "running"


def test_a_second_sandbox_of_one_attempt_is_a_stray() -> None:
    life = running()
    life.runs("sandbox-0", pleg.SANDBOX).then()
    assert life.runs("other", pleg.SANDBOX).kinds == ["StrayFound", "ContainerStopRequested"]
    dead = running().sandbox_dies(after=1000)
    assert dead.state.sandbox.phase == "dead"
    assert dead.runs("other", pleg.SANDBOX).kinds == ["StrayFound", "ContainerStopRequested"]


def test_a_dead_sandbox_that_runs_again_is_a_stray() -> None:
    life = running().sandbox_dies(after=700)
    began = life.state.sandbox.started_at
    life.runs("sandbox-0", pleg.SANDBOX, started_at=began + 500).then()  # a delayed notice about the run that has ended
    life.at += 100
    assert life.runs("sandbox-0", pleg.SANDBOX).kinds == ["StrayFound", "ContainerStopRequested"]
    life.stopped("stray/sandbox-0")
    assert life.kinds[0] == "ContainerExited"
    assert life.state.strays == ()


def test_a_sandbox_that_a_call_in_progress_starts_again_is_a_stray() -> None:
    """The engine was killed after it had started the sandbox; the start was repeated after the sandbox's death."""
    life = Life().apply(manifest())
    died(life, started_at=life.at, container_id="sandbox-0", name=pleg.SANDBOX)
    life.at += 2000
    assert life.runs("sandbox-0", pleg.SANDBOX).kinds == ["StrayFound", "ContainerStopRequested"]


def test_a_replaced_sandbox_that_runs_is_a_stray_whenever_it_started() -> None:
    life = running().sandbox_dies(after=20_000).stopped()
    assert life.state.sandbox.attempt == 1
    began = life.state.sandbox.requested_at - 1
    found = life.runs("sandbox-0", pleg.SANDBOX, started_at=began)
    assert found.kinds == ["StrayFound", "ContainerStopRequested"]


def test_an_old_start_of_the_last_dead_container_is_ignored() -> None:
    life = running().dies()
    life.runs("app-0", started_at=life.at - 500).then()


def test_the_last_dead_container_may_be_started_by_hand() -> None:
    life = running().dies().start().dies()
    life.at += 2000
    assert life.runs("app-1", attempt=1).kinds == ["ContainerStarted"]
    life.then_kube_events(("Started", "Container started"))
    assert life.due is None
    assert life.dies().kinds[:1] == ["ContainerExited"]


def test_a_start_before_the_known_end_is_a_new_run_if_the_clock_was_set_back() -> None:
    life = running().dies(after=60_000)
    began = life.state.container("app").exit.started_at
    life.start().dies(after=60_000)
    began = life.state.container("app").exit.started_at
    assert life.runs("app-1", attempt=1, started_at=began - 3_600_000).kinds == ["ContainerStarted"]
    assert life.dies().kinds[:1] == ["ContainerExited"]
    # The clock is set back by less than the run lasted.
    life = running().dies().start().dies(after=60_000)
    began = life.state.container("app").exit.started_at
    assert life.runs("app-1", attempt=1, started_at=began + 5000).kinds == ["ContainerStarted"]


def test_one_crash_is_one_run_whichever_report_comes_first() -> None:
    """The effect's result has the start time from an inspect; the notice was written a little later, after the end."""
    life = running().dies().image_there()
    life.answer(
        "container/app",
        signals.ContainerDead,
        id="app-1",
        exit_code=1,
        reason="Error",
        started_at=life.at,
        finished_at=life.at + 5,
    )
    life.runs("app-1", attempt=1, started_at=life.at + 9).then()
    died(life, started_at=life.at + 9, container_id="app-1", attempt=1).then()
    assert (life.state.container("app").restarts, life.state.container("app").phase) == (1, "backing_off")
    unstarted = running().dies().image_there()
    unstarted.answer(
        "container/app",
        signals.ContainerRefused,
        reason="RunContainerError",
        message="no",
        id="app-1",
    )
    unstarted.runs("app-1", attempt=1, started_at=unstarted.at - 1).then()


def test_an_unobserved_exit_is_reported_as_unknown() -> None:
    life = running().dies(code=137, reason="ContainerStatusUnknown")
    exited = life.only(pod.ContainerExited)
    assert (exited.reason, exited.exit_code) == ("ContainerStatusUnknown", 137)
    assert exited.message.startswith("the container could not be located: its real exit status is unknown")
    last = plain_status(life.state)["containerStatuses"][0]["state"]["terminated"]
    assert (last["reason"], last["message"]) == (exited.reason, exited.message)
    assert running().dies(code=137).only(pod.ContainerExited).message == ""


def test_an_unobserved_exit_is_reported_once_for_each_container() -> None:
    gone = "ContainerStatusUnknown"
    life = running(container("app"), container("other")).dies("other", code=137, reason=gone)
    text = "could not be located: its real exit status is unknown and reported as exit code 137"
    assert (gone, f"Container other {text}") in life.reasons_and_texts
    (event,) = (one for one in life.recorded if one.reason == gone)
    assert (event.severity, event.field_path) == ("Warning", "spec.containers{other}")

    restarted = Life()
    for event in life.history:
        restarted._fold(event)
    restarted.at = life.at
    news = pleg.ContainerDied(
        pod=POD,
        uid="u1",
        container="other",
        attempt=0,
        id="other-0",
        exit_code=137,
        reason=gone,
        started_at=T0,
        finished_at=0,
    )
    restarted.when(news).then().then_kube_events()
    restarted.dies("app", code=137, reason=gone)
    assert [reason for reason, _ in restarted.reasons_and_texts].count(gone) == 1


def test_the_exit_of_a_stray_changes_no_status() -> None:
    life = running().runs("x1", name="app", attempt=9)
    life.answer(
        "stray/x1",
        signals.ContainerDead,
        id="x1",
        exit_code=137,
        reason="ContainerStatusUnknown",
        finished_at=life.at,
    )
    assert life.kinds == ["ContainerExited"]
    life.then_kube_events()


def test_the_last_dead_container_started_by_hand_during_the_next_start_is_a_stray() -> None:
    life = running().dies()
    life.at += 2000
    assert life.runs("app-0").kinds == ["StrayFound", "ContainerStopRequested"]
    life.stopped("stray/app-0")
    assert life.kinds == ["ContainerExited"]
    life.start().dies()
    # This is a late notice about an attempt that was dead before the next one was requested.
    life.runs("app-0", started_at=life.state.container("app").requested_at - 1).then()


def test_a_running_container_of_another_attempt_is_stopped() -> None:
    life = running().runs("x1", name="app", attempt=9)
    assert life.kinds == ["StrayFound", "ContainerStopRequested"]
    assert life.facts[1].reason == "Superseded"
    life.then_kube_events(("Killing", "Stopping container app"))
    life.runs("x1", name="app", attempt=9).then()
    life.runs("x2", name="ghost")
    life.runs("x3", uid="u0")
    assert life.effects["stray/x3"].uid == "u0"
    assert set(life.effects) == {"stray/x1", "stray/x2", "stray/x3"}


def test_a_running_container_of_the_next_attempt_is_left_to_its_start() -> None:
    """If the newest log entries, or all of them, were lost, a running container may be missing from the log; its start
    finds it.
    """
    life = Life().apply(manifest()).runs("app-0")
    life.then()
    life.sandbox_up().runs("app-0").then()
    life.image_there()
    assert set(life.effects) == {"container/app"}
    again = running().dies()
    again.runs("app-1", attempt=1).then()
    again.start().runs("app-1", attempt=1).then()
    ending = Life().apply(manifest()).withdraw()
    assert ending.runs("app-0").kinds == ["StrayFound", "ContainerStopRequested"]


def test_a_half_restored_container_is_left_to_its_start() -> None:
    """The engine was killed while it started the container, and does not know the container's start time."""
    life = starting()
    life.when(pleg.ContainerStarted(pod=POD, uid="u1", container="app", attempt=0, id="app-0", started_at=0)).then()
    assert set(life.effects) == {"container/app"}


def test_a_sandbox_that_runs_after_an_interrupted_start_is_looked_up_immediately() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="cut off")
    began = life.state.sandbox.requested_at
    life.at += 1000
    assert life.runs("sandbox-0", pleg.SANDBOX).kinds == ["SandboxStartRequested"]
    assert (life.facts[0].attempt, life.facts[0].requested_at) == (0, began)
    assert life.sandbox_up().kinds == ["SandboxStarted", "ImageEnsureRequested"]


def test_a_sandbox_of_another_definition_is_not_looked_up() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="cut off")
    life.apply(with_port(80)).runs("sandbox-0", pleg.SANDBOX).then()
    ending = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="cut off").withdraw()
    ending.runs("sandbox-0", pleg.SANDBOX).then()


def test_a_container_that_runs_after_an_interrupted_start_is_looked_up_immediately() -> None:
    life = starting().answer(
        "container/app", signals.ContainerRefused, reason="RunContainerError", message="cut off", id=""
    )
    life.at += 1000
    assert life.runs("app-0").kinds == ["ImageEnsureRequested"]
    assert life.start().state.container("app").phase == "running"


def test_a_container_of_another_definition_is_not_looked_up() -> None:
    life = starting().answer(
        "container/app", signals.ContainerRefused, reason="RunContainerError", message="cut off", id=""
    )
    life.apply(manifest(container(args=("x",))))
    assert life.state.container("app").phase == "pulling"
    life.runs("app-0").then()


def test_a_stray_sandbox_is_stopped_and_the_pods_own_is_not() -> None:
    life = running().runs("sandbox-0", name=pleg.SANDBOX)
    life.then()
    assert life.runs("s9", name=pleg.SANDBOX, attempt=9).kinds == ["StrayFound", "ContainerStopRequested"]
    assert life.events[-1].field_path == ""


def test_a_stray_that_cannot_be_stopped_is_retried() -> None:
    life = running().runs("x1", attempt=9).answer("stray/x1", signals.StopRefused, message="no")
    assert life.effects == {}
    assert life.wake().kinds == ["ContainerStopRequested"]
    assert life.when(
        pleg.ContainerDied(
            pod=POD,
            uid="u1",
            container="app",
            attempt=9,
            id="x1",
            exit_code=0,
            reason="Completed",
            started_at=0,
            finished_at=0,
        )
    ).kinds == ["ContainerExited"]


def test_the_end_waits_for_strays() -> None:
    life = running().runs("x1", attempt=9).withdraw().stopped()
    assert life.kinds == ["ContainerExited"]
    assert life.stopped("stray/x1").kinds == ["ContainerExited", "SandboxStopRequested"]
    life.end()
    assert life.state is None


def test_a_stray_that_is_found_during_the_end_is_stopped() -> None:
    life = running().withdraw().runs("x1", attempt=9)
    assert life.kinds == ["StrayFound", "ContainerStopRequested"]
    life.stopped().stopped("stray/x1").end()
    assert life.state is None


def test_an_unfit_result_of_a_stop_is_ignored() -> None:
    life = running(container("app")).withdraw()
    life.answer("container/app", signals.SpecKept).then()
