"""Runs of the container collector: one at a time, with one result for each container to remove."""

from __future__ import annotations

from typing import Any

import msgspec

from chronolet.container_gc import signals, wanted
from chronolet.container_gc.decider import DECIDER
from chronolet.kernel.decider import EffectFailed
from chronolet_schemas import container_gc, kernel, kube_events, manifests, pod, podspec
from chronolet_schemas.container_gc import (
    NotRemoved,
    PodFinished,
    PodForgotten,
    PodNoted,
    PolicySet,
    Removed,
    RunFinished,
    RunRequested,
    RunStarted,
    SourcesReady,
    Victim,
)
from chronolet_schemas.envelope import Event
from tests.deciders.given import Scene, given

POLICY = container_gc.Policy()
NOW = 1_000_000
SET = PolicySet(node="node", policy=POLICY)
WEB = PodNoted(pod="default/web", uid="u1")


def scene(*events: Event) -> Scene:
    return given(DECIDER, SET, *events)


def seen(number: int, **more: Any) -> signals.RuntimeObject:
    fields: dict[str, Any] = {
        "id": f"k{number}",
        "name": f"chrono_app_web_default_u1_{number}",
        "pod": "default/web",
        "uid": "u1",
        "container": "app",
        "attempt": number,
        "created_at": number * 10,
        "state": "exited",
    }
    return signals.RuntimeObject(**fields | more)


def looked(*containers: signals.RuntimeObject, **more: Any) -> signals.Looked:
    return signals.Looked(node="node", policy=POLICY, containers=containers, **more)


def victim(number: int, **more: Any) -> Victim:
    fields: dict[str, Any] = {
        "what": "container",
        "id": f"k{number}",
        "name": f"chrono_app_web_default_u1_{number}",
        "pod": "default/web",
        "uid": "u1",
        "container": "app",
        "rule": "per_container_limit",
    }
    return Victim(**fields | more)


def of(one: Victim, run: int = 1) -> dict[str, Any]:
    return {
        "run": run,
        "what": one.what,
        "id": one.id,
        "name": one.name,
        "pod": one.pod,
        "uid": one.uid,
        "rule": one.rule,
    }


def removals(scene: Scene) -> list[str]:
    """Return the ids of the outstanding removals, in order."""
    return [one.victim.id for one in scene.effects.values() if isinstance(one, wanted.Remove)]


def of_removal(scene: Scene, number: int | None = None) -> dict[str, str]:
    """Return the subject and intent of the removal of k<number>; without a number, those of the first removal."""
    found = [one for one in scene.effects.values() if isinstance(one, wanted.Remove)]
    effect = found[0] if number is None else next(one for one in found if one.victim.id == f"k{number}")
    return {"subject": effect.subject, "intent": effect.intent}


def done(scene: Scene, number: int | None = None) -> signals.RemovalDone:
    return signals.RemovalDone(**of_removal(scene, number))


def refused(scene: Scene, error: str = "busy", number: int | None = None) -> signals.RemovalRefused:
    return signals.RemovalRefused(**of_removal(scene, number), error=error)


def test_nothing_is_due_and_the_periodic_inventory_is_always_outstanding() -> None:
    assert given(DECIDER).effects == {"period": wanted.LookPeriodically(subject="period", intent="period")}
    assert given(DECIDER).due is None


def test_changed_settings_are_recorded() -> None:
    story = given(DECIDER).when(looked(), at=NOW)
    story.then(SET, RunFinished(run=1, trigger="period", at=NOW))
    other = container_gc.Policy(max_containers=5)
    story.when(msgspec.structs.replace(looked(), policy=other), at=NOW + 5).then(PolicySet(node="node", policy=other))


def test_pods_are_added_and_removed() -> None:
    accepted = pod.SpecAccepted(
        pod="default/web",
        uid="u1",
        source="apply",
        digest="d",
        manifest=podspec.Pod(),
        accepted_at=1,
        sandbox_hash="s",
        container_hashes={},
    )
    story = given(DECIDER).when(accepted).then(WEB)
    story.when(accepted).then()
    story.when(pod.PodEnded(pod="default/web", uid="u1")).then(PodForgotten(pod="default/web", uid="u1"))
    story.when(pod.PodEnded(pod="default/web", uid="u1")).then()
    assert not story.state.pods


def test_a_full_disk_allows_removing_the_containers_of_finished_pods() -> None:
    over = pod.CgroupReleased(pod="default/web", uid="u1")
    finished = PodFinished(pod="default/web", uid="u1")
    story = scene(SourcesReady()).when(over).then()  # no such pod is known
    story = scene(WEB, SourcesReady()).when(over).then(finished)
    story.when(over).then()
    story.when(looked(seen(1)), at=NOW).then(RunFinished(run=1, trigger="period", at=NOW, kept={"within_limits": 1}))
    story.when(kernel.BallastGivenUp(freed_bytes=1, error="full"))
    gone = victim(1, rule="terminated_pod")
    story.when(looked(seen(1), intent="look/1"), at=NOW + 1).then(
        RunStarted(run=2, trigger="disk", at=NOW + 1, victims=(gone,))
    )


def test_a_pod_is_finished_when_its_last_sandbox_is_dead() -> None:
    stopped = {"pod": "default/web", "uid": "u1", "attempt": 0, "id": "s0"}
    story = scene(WEB).when(pod.SandboxStopRequested(**stopped)).then()  # another sandbox follows, or the pod ends
    story.when(pod.SandboxStopRequested(**stopped, finished=True)).then(PodFinished(pod="default/web", uid="u1"))
    story.when(pod.CgroupReleased(pod="default/web", uid="u1")).then()


def test_a_finished_pod_that_starts_again_is_kept() -> None:
    again = pod.SandboxStartRequested(pod="default/web", uid="u1", attempt=1, spec_hash="s", requested_at=1)
    story = scene(WEB, SourcesReady()).when(again).then()
    story.when(pod.CgroupReleased(pod="default/web", uid="u1"))
    assert story.state.finished == {"u1"}
    story.when(again).then(WEB)
    assert story.state.finished == frozenset()
    story.when(pod.CgroupReleased(pod="default/web", uid="u1"))
    story.when(pod.PodEnded(pod="default/web", uid="u1")).then(PodForgotten(pod="default/web", uid="u1"))
    assert story.state.finished == frozenset()


def test_the_sources_become_ready_once() -> None:
    read = manifests.FolderRead(path="", files=0)
    story = given(DECIDER).when(read).then(SourcesReady())
    story.when(read).then()


def test_a_run_that_removes_nothing_records_what_stays_and_why() -> None:
    story = scene(WEB).when(looked(seen(1), seen(2, state="running")), at=NOW)
    story.then(RunFinished(run=1, trigger="period", at=NOW, kept={"within_limits": 1, "running": 1}))


def test_a_periodic_run_with_the_same_result_as_the_last_writes_nothing() -> None:
    story = scene(WEB).when(looked(seen(1), seen(2, state="running")), at=NOW)
    reported = story.only(RunFinished).kept
    for minute in range(1, 4):
        story.when(looked(seen(1), seen(2, state="running")), at=NOW + minute * 60_000).then()
    # The inventory has changed.
    story.when(looked(seen(1)), at=NOW + 300_000)
    assert story.only(RunFinished).kept != reported
    # A requested run always has a result, and each error and its end are reported.
    story.when(container_gc.CollectContainers(request="r1"))
    story.when(looked(seen(1), intent="look/1"), at=NOW + 360_000)
    assert story.only(RunFinished).request == "r1"
    for minute in (7, 8):
        story.when(looked(seen(1), errors={"sandboxes": "no daemon"}), at=NOW + minute * 60_000)
        assert story.only(RunFinished).error == "no daemon"
    story.when(looked(seen(1)), at=NOW + 540_000)
    assert story.only(RunFinished).error == ""
    story.when(looked(seen(1)), at=NOW + 600_000).then()


def test_victims_are_removed_in_order() -> None:
    story = scene(WEB).when(looked(seen(1), seen(2), seen(3)), at=NOW)
    begun = RunStarted(run=1, trigger="period", at=NOW, victims=(victim(1), victim(2)), kept={"within_limits": 1})
    story.then(begun)
    assert story.effects["remove/0"] == wanted.Remove(subject="remove/0", intent="remove/1/0", victim=victim(1))
    assert removals(story) == ["k1"]
    first = done(story)
    story.when(first, at=NOW + 20).then(Removed(**of(victim(1))))
    assert story.effects["remove/1"] == wanted.Remove(subject="remove/1", intent="remove/1/1", victim=victim(2))
    story.when(first, at=NOW + 21).then()
    story.when(done(story), at=NOW + 40).then(
        Removed(**of(victim(2))),
        RunFinished(run=1, trigger="period", at=NOW + 40, milliseconds=40, removed=2, kept={"within_limits": 1}),
    )
    assert set(story.effects) == {"period"}
    assert story.state.run is None


def test_removals_run_concurrently_with_one_result_each() -> None:
    story = scene(WEB).when(looked(*(seen(number) for number in range(1, 14)), parallel=2), at=NOW)
    assert story.only(RunStarted).parallel == 2
    # Two at a time, with three queued behind each, so that the workers do not wait for the log.
    assert removals(story) == ["k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"]
    third = done(story, 3)
    story.when(third, at=NOW).then(Removed(**of(victim(3))))
    assert removals(story) == ["k1", "k2", "k4", "k5", "k6", "k7", "k8", "k9"]
    story.when(third, at=NOW).then()
    story.when(refused(story, number=1), at=NOW).then(NotRemoved(error="busy", **of(victim(1))))
    assert removals(story) == ["k2", "k4", "k5", "k6", "k7", "k8", "k9", "k10"]
    failed = EffectFailed(effect="Remove", **of_removal(story, 4), error="it hung", timed_out=True)
    story.when(failed, at=NOW).then(NotRemoved(error="it hung", **of(victim(4))))
    while removals(story):
        story.when(done(story), at=NOW)
    assert (story.only(RunFinished).removed, story.only(RunFinished).failed) == (10, 2)
    assert story.state.run is None


def test_a_result_that_is_in_the_log_twice_counts_once() -> None:
    story = scene(WEB).when(looked(*(seen(number) for number in range(1, 10)), parallel=2), at=NOW)
    for event in (Removed(**of(victim(2))), Removed(**of(victim(2))), Removed(**of(victim(77)))):
        story.state = DECIDER.evolve(story.state, event)
    assert story.state.run.removed == 1
    assert removals(story) == ["k1", "k3", "k4", "k5", "k6", "k7", "k8"]


def test_a_run_of_an_earlier_release_continues_with_one_removal_at_a_time() -> None:
    begun = RunStarted(run=1, trigger="period", at=NOW, victims=(victim(1), victim(2), victim(3)))
    story = scene(WEB, begun, Removed(**of(victim(1))))
    assert removals(story) == ["k2"]


def test_containers_are_removed_before_sandboxes_and_those_before_logs() -> None:
    scan = looked(
        *(seen(number, uid="gone", sandbox_id="k9", container=f"c{number}") for number in (1, 2)),
        sandboxes=(seen(9, container="POD", created_at=1, uid="gone"), seen(8, container="POD", uid="gone")),
        log_folders=(signals.Folder(name="default_web_gone"),),
        parallel=4,
    )
    story = scene(SourcesReady()).when(scan, at=NOW)
    assert removals(story) == ["k1", "k2"]
    story.when(refused(story, number=2), at=NOW)
    assert removals(story) == ["k1"]
    story.when(done(story), at=NOW)
    assert story.only(NotRemoved).id == "k9", "the sandbox of the container that stayed"
    assert removals(story) == ["k8"]
    story.when(done(story), at=NOW)
    assert removals(story) == ["default_web_gone"]
    story.when(done(story), at=NOW)
    assert (story.only(RunFinished).removed, story.only(RunFinished).failed) == (3, 2)


def test_a_requested_run_for_left_alone_containers_removes_only_those() -> None:
    lost: dict[str, Any] = {"uid": "lost", "of_this_log": False}
    scan = looked(
        seen(1),
        seen(2),
        seen(3, **lost, sandbox_id="k7"),
        seen(4, **lost, sandbox_id="k8"),
        seen(5, **lost, sandbox_id="k8", container="b", state="running"),
        sandboxes=(
            seen(7, container="POD", **lost),
            seen(8, container="POD", **lost | {"uid": "lost2"}),
            seen(9, container="POD", uid="gone"),
        ),
        log_folders=(signals.Folder(name="default_web_gone"),),
        intent="look/1",
    )
    story = scene(WEB, SourcesReady()).when(container_gc.CollectContainers(request="r1", left_alone=True))
    story.then(RunRequested(trigger="request", request="r1", left_alone=True))
    story.when(scan, at=NOW)
    started = story.only(RunStarted)
    assert [(one.id, one.rule) for one in started.victims] == [
        ("k3", "left_alone"),
        ("k4", "left_alone"),
        ("k7", "left_alone"),
    ]
    assert started.kept == {"running": 1, "has_containers": 1}
    # Until all sources are read, a pod may still be adopted.
    early = scene(WEB).when(container_gc.CollectContainers(request="r1", left_alone=True))
    assert early.when(scan, at=NOW).only(RunFinished).kept == {"left_alone": 2, "running": 1, "newest_sandbox": 2}
    # A periodic run does not touch them.
    usual = scene(WEB, SourcesReady()).when(msgspec.structs.replace(scan, intent=""), at=NOW)
    assert {one.id for one in usual.only(RunStarted).victims} == {"k1", "k9", "default_web_gone"}


def test_containers_are_not_left_alone_if_the_listing_failed() -> None:
    story = scene(WEB, SourcesReady()).when(container_gc.CollectContainers(request="r1", left_alone=True))
    sandbox = seen(7, container="POD", uid="lost", of_this_log=False)
    story.when(looked(sandboxes=(sandbox,), errors={"containers": "no daemon"}, intent="look/1"), at=NOW)
    assert story.only(RunFinished).kept == {"has_containers": 1}
    assert story.only(RunFinished).error == "no daemon"


def test_an_inventory_during_a_run_is_ignored() -> None:
    story = scene(WEB).when(looked(seen(1), seen(2)), at=NOW)
    story.when(looked(seen(1), seen(2), seen(3)), at=NOW + 1).then()


def test_a_refused_removal_is_recorded_and_the_next_follows() -> None:
    story = scene(WEB).when(looked(seen(1), seen(2), seen(3)), at=NOW)
    story.when(refused(story), at=NOW).then(NotRemoved(error="busy", **of(victim(1))))
    failed = EffectFailed(effect="Remove", **of_removal(story), error="it hung", timed_out=True)
    story.when(failed, at=NOW)
    story.then(
        NotRemoved(error="it hung", **of(victim(2))),
        RunFinished(run=1, trigger="period", at=NOW, failed=2, kept={"within_limits": 1}),
    )
    # A refusal alone does not fail the run: the kubelet only logs it.
    assert story.reasons_and_texts == ()


def test_a_sandbox_stays_if_one_of_its_containers_stays() -> None:
    containers = (seen(1, sandbox_id="k9", uid="gone"), seen(2, sandbox_id="k9", uid="gone", container="b"))
    scan = looked(
        *containers,
        sandboxes=(seen(9, container="POD", created_at=1, uid="gone"), seen(8, container="POD", uid="gone")),
    )
    story = scene(SourcesReady()).when(scan, at=NOW)
    assert [one.id for one in story.only(RunStarted).victims] == ["k1", "k2", "k9", "k8"]
    story.when(refused(story), at=NOW)
    story.when(done(story), at=NOW)
    assert [type(one) for one in story.events] == [Removed, NotRemoved]
    assert story.only(NotRemoved).error == "one of its containers could not be removed"
    story.when(done(story), at=NOW)
    assert story.only(RunFinished).removed == 2
    assert story.only(RunFinished).failed == 2


def test_a_run_ends_if_the_last_sandbox_has_to_stay() -> None:
    scan = looked(seen(1, sandbox_id="k9", uid="gone"), sandboxes=(seen(9, container="POD", uid="gone", created_at=1),))
    story = scene(SourcesReady()).when(scan, at=NOW)
    story.when(refused(story), at=NOW)
    assert story.kinds == ["NotRemoved", "NotRemoved", "RunFinished"]


def test_each_run_without_an_inventory_fails() -> None:
    story = scene(WEB)
    for _ in range(2):
        story.when(looked(errors={"containers": "no daemon", "sandboxes": "no daemon"}), at=NOW)
        assert story.only(RunFinished).error == "no daemon"
        (recorded,) = story.recorded
        assert recorded == kube_events.Recorded(
            object_kind="Node", name="node", severity="Warning", reason="ContainerGCFailed", message="no daemon"
        )


def test_an_inventory_error_is_recorded_at_the_end_of_the_run() -> None:
    scan = looked(seen(1), seen(2), errors={"pod_log_directories": "no such disk", "sandboxes": "odd"})
    story = scene(WEB).when(scan, at=NOW)
    assert story.only(RunStarted).error == "[odd, no such disk]"
    assert story.reasons_and_texts == ()
    story.when(done(story), at=NOW)
    story.then_kube_events(("ContainerGCFailed", "[odd, no such disk]"))


def test_a_run_can_be_requested() -> None:
    story = scene(WEB).when(container_gc.CollectContainers(request="r1"))
    story.then(RunRequested(trigger="request", request="r1"))
    assert story.effects["run"] == wanted.Look(subject="run", intent="look/1")
    # A periodic inventory and the result of another request are ignored.
    story.when(looked(seen(1), seen(2)), at=NOW).then()
    story.when(looked(seen(1), seen(2), intent="look/7"), at=NOW).then()
    story.when(looked(seen(1), seen(2), intent="look/1"), at=NOW)
    assert story.only(RunStarted).request == "r1"
    story.when(done(story), at=NOW)
    assert story.only(RunFinished).request == "r1"
    assert story.state.asked == ()


def test_requested_runs_queue() -> None:
    story = scene(WEB).when(looked(seen(1), seen(2)), at=NOW)
    story.when(container_gc.CollectContainers(request="r1"))
    story.when(container_gc.CollectContainers(request="r2"))
    story.when(done(story), at=NOW)
    assert story.only(RunFinished).trigger == "period"
    assert story.effects["run"].intent == "look/1"
    story.when(looked(intent="look/1"), at=NOW)
    assert story.only(RunFinished).request == "r1"
    assert story.effects["run"].intent == "look/2"
    story.when(looked(intent="look/2"), at=NOW)
    assert story.only(RunFinished).request == "r2"
    assert set(story.effects) == {"period"}
    story.when(looked(intent="look/2"), at=NOW).then()


def test_a_full_disk_requests_one_run() -> None:
    gone = kernel.BallastGivenUp(freed_bytes=1, error="full")
    story = scene().when(gone).then(RunRequested(trigger="disk"))
    story.then_kube_events(("EvictionThresholdMet", "Attempting to reclaim ephemeral-storage"))
    story.when(gone).then().then_kube_events()
    story.when(looked(intent="look/1"), at=NOW).then(RunFinished(run=1, trigger="disk", at=NOW))
    story.when(gone).then(RunRequested(trigger="disk"))


def test_a_full_disk_before_the_first_inventory_requests_no_run() -> None:
    story = given(DECIDER).when(kernel.BallastGivenUp(freed_bytes=1, error="full")).then(RunRequested(trigger="disk"))
    story.then_kube_events()


def test_a_failed_inventory_fails_the_run() -> None:
    failed = EffectFailed(effect="Look", subject="run", intent="look/1", error="it hung", timed_out=True)
    story = scene().when(failed).then()
    story.when(container_gc.CollectContainers(request="r1")).when(failed, at=NOW)
    story.then(RunFinished(run=1, trigger="request", request="r1", at=NOW, error="it hung"))
    story.then_kube_events(("ContainerGCFailed", "it hung"))


def test_unexpected_results_are_ignored() -> None:
    scene().when(signals.RemovalDone(subject="remove/0", intent="remove/1/0")).then()


def test_unknown_events_change_nothing() -> None:
    state = scene(WEB).state
    assert DECIDER.evolve(state, kernel.ClockJumped(by_milliseconds=5)) is state
    assert DECIDER.evolve(state, container_gc.RunEvent(run=3)) is state
    assert DECIDER.evolve(state, PodForgotten(pod="default/db", uid="u9")).pods == state.pods
