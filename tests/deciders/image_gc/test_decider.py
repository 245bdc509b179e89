"""What is recorded about images, and which images are removed when."""

from __future__ import annotations

from typing import Any

from chronolet.image_gc import signals, wanted
from chronolet.image_gc.decider import DECIDER
from chronolet.image_gc.planning import ages
from chronolet.kernel.decider import EffectFailed
from chronolet_schemas import image_gc, kernel
from chronolet_schemas.image_gc import (
    Candidate,
    DiskReadAgain,
    Image,
    ImageNotRemoved,
    ImageRemoved,
    ImagesChanged,
    PolicySet,
    RunFinished,
    RunRequested,
    RunStarted,
    TimesClamped,
)
from tests.deciders.given import Scene, given

POLICY = image_gc.Policy(min_age_milliseconds=0)
T0 = 1_000_000
SET = PolicySet(node="node", policy=POLICY)
FULL = signals.Disk(capacity_bytes=1000, available_bytes=50)
ROOMY = signals.Disk(capacity_bytes=1000, available_bytes=900)


def image(name: str, size: int = 100, *users: str, **more: Any) -> Image:
    return Image(id=name, size_bytes=size, names=(f"{name}:1",), users=users, user_count=len(users), **more)


def scene(*images: Image, policy: image_gc.Policy = POLICY) -> Scene:
    """Create a collector that recorded these images at T0."""
    return given(DECIDER, PolicySet(node="node", policy=policy), ImagesChanged(at=T0, used_until=0, seen=images))


def looked(*images: Image, policy: image_gc.Policy = POLICY, **more: Any) -> signals.Looked:
    return signals.Looked(node="node", policy=policy, images=images, **more)


def candidate(name: str, size: int = 100, reason: image_gc.Reason = "space") -> Candidate:
    return Candidate(id=name, name=f"{name}:1", size_bytes=size, reason=reason)


def of(one: Candidate) -> dict[str, Any]:
    return {"run": 1, "id": one.id, "name": one.name, "size_bytes": one.size_bytes, "reason": one.reason}


def done(scene: Scene) -> signals.RemovalDone:
    effect = scene.effects["run"]
    return signals.RemovalDone(subject=effect.subject, intent=effect.intent)


def refused(scene: Scene, error: str = "busy") -> signals.RemovalRefused:
    effect = scene.effects["run"]
    return signals.RemovalRefused(subject=effect.subject, intent=effect.intent, error=error)


def test_images_are_inspected_periodically_once_the_settings_are_known() -> None:
    assert set(given(DECIDER).effects) == {"usage"}
    assert given(DECIDER).due is None
    story = given(DECIDER).when(looked(), at=T0).then(SET, ImagesChanged(at=T0, used_until=0))
    assert story.effects == {
        "usage": wanted.WatchImages(subject="usage", intent="usage"),
        "period": wanted.LookPeriodically(subject="period", intent="period"),
    }
    story.when(looked(), at=T0 + 1).then()


def test_only_changes_are_recorded() -> None:
    story = given(DECIDER, SET).when(looked(image("a"), image("b", 100, "x")), at=T0)
    story.then(ImagesChanged(at=T0, used_until=0, seen=(image("a"), image("b", 100, "x"))))
    story.when(looked(image("a"), image("b", 100, "x")), at=T0 + 30).then()
    story.when(looked(image("a", 200), image("b", 100, "x")), at=T0 + 60)
    story.then(ImagesChanged(at=T0 + 60, used_until=T0, seen=(image("a", 200),)))
    story.when(looked(image("a", 200)), at=T0 + 90).then(ImagesChanged(at=T0 + 90, used_until=T0 + 60, gone=("b",)))
    assert story.state.began_at == T0
    assert story.state.records["a"].first_detected == T0


def test_an_image_whose_size_changes_keeps_its_age() -> None:
    story = scene(image("a", 10), image("b", 10)).when(looked(image("a", 70), image("b", 10)), at=T0 + 50)
    assert {key: (one.image.size_bytes, one.first_detected) for key, one in story.state.records.items()} == {
        "a": (70, T0),
        "b": (10, T0),
    }


def test_an_image_was_last_used_when_an_inventory_last_saw_its_use() -> None:
    story = scene(image("a", 100, "x"))
    record = story.state.records["a"]
    assert ages.last_used(record, T0 + 500) == T0 + 500
    story.when(looked(image("a"), looked_before=T0 + 60), at=T0 + 90)
    assert story.only(ImagesChanged).used_until == T0 + 60
    assert ages.last_used(story.state.records["a"], T0 + 500) == T0 + 60
    # The image is used again, then no longer: the earlier use does not count.
    story.when(looked(image("a", 100, "y"), looked_before=T0 + 90), at=T0 + 120)
    story.when(looked(image("a")), at=T0 + 150)
    assert ages.last_used(story.state.records["a"], T0 + 500) == T0 + 120


def test_the_last_run_determines_the_use_of_images_after_a_restart() -> None:
    story = scene(image("a", 100, "x")).when(looked(image("a", 100, "x"), disk=ROOMY), at=T0 + 300)
    story.when(looked(image("a")), at=T0 + 900)
    assert story.only(ImagesChanged).used_until == T0 + 300


def test_no_image_stays_permanently_after_the_clock_was_set_back() -> None:
    story = scene(image("a"), image("b", 100, "x")).when(
        looked(image("a"), image("b"), looked_before=T0 + 50), at=T0 + 60
    )
    back = T0 - 1_000
    story.when(looked(image("a"), image("b")), at=back).then(TimesClamped(at=back))
    times = {known: (one.first_detected, one.last_used) for known, one in story.state.records.items()}
    assert times == {"a": (back, 0), "b": (back, back)}
    assert (story.state.began_at, story.state.looked_at) == (back, back)
    story.when(looked(image("a"), image("b")), at=back + 1).then()


def test_many_images_are_split_into_several_events() -> None:
    many = tuple(image(f"i{number:04}") for number in range(501))
    story = given(DECIDER, SET).when(looked(*many), at=T0)
    assert [len(one.seen) for one in story.facts if isinstance(one, ImagesChanged)] == [500, 1]
    assert len(story.state.records) == 501


def test_a_failed_inventory_changes_no_records() -> None:
    story = scene(image("a")).when(looked(error="no daemon"), at=T0 + 30).then()
    story.when(looked(error="no daemon", disk=signals.Disk()), at=T0 + 300)
    story.then(RunFinished(run=1, operation="collect", trigger="period", at=T0 + 300, error="no daemon"))
    story.then_kube_events()
    story.when(looked(error="no daemon", disk=signals.Disk()), at=T0 + 600).then_kube_events(
        ("ImageGCFailed", "no daemon")
    )
    assert story.state.looked_at == T0


def test_nothing_is_removed_below_the_threshold() -> None:
    story = scene(image("a"), image("b", 100, "x")).when(
        looked(image("a"), image("b", 100, "x"), disk=ROOMY), at=T0 + 9
    )
    story.then(
        RunFinished(
            run=1,
            operation="collect",
            trigger="period",
            at=T0 + 9,
            capacity_bytes=1000,
            available_bytes=900,
            usage_percent=10,
            wanted_bytes=0,
            kept={"below_threshold": 1, "in_use": 1},
        )
    )


def test_a_periodic_run_with_the_same_result_as_the_last_writes_nothing() -> None:
    images = (image("a"), image("b", 100, "x"))
    story = scene(*images).when(looked(*images, disk=ROOMY), at=T0)
    assert story.kinds == ["RunFinished"]
    story.when(looked(*images, disk=ROOMY), at=T0 + 300_000).then()
    # The disk is fuller than last reported.
    fuller = signals.Disk(capacity_bytes=1000, available_bytes=800)
    story.when(looked(*images, disk=fuller), at=T0 + 600_000)
    assert story.only(RunFinished).usage_percent == 20
    story.when(looked(*images, disk=fuller), at=T0 + 900_000).then()
    # Once an hour, the time until which images were in use is recorded.
    story.when(looked(*images, disk=fuller), at=T0 + 600_000 + 3_599_999).then()
    story.when(looked(*images, disk=fuller), at=T0 + 600_000 + 3_600_000)
    assert story.kinds == ["RunFinished"]
    assert story.state.looked_at == T0 + 4_200_000
    # A requested run always has a result.
    story.when(image_gc.CollectImages(request="r1"))
    story.when(looked(*images, disk=fuller, intent="look/1"), at=T0 + 4_200_001)
    assert story.only(RunFinished).request == "r1"


def test_with_a_maximum_age_the_use_of_images_is_recorded_more_often() -> None:
    hour = image_gc.Policy(min_age_milliseconds=0, max_age_milliseconds=3_600_000)
    story = scene(image("a", 100, "x"), policy=hour)
    story.when(looked(image("a", 100, "x"), policy=hour, disk=ROOMY), at=T0)
    story.when(looked(image("a", 100, "x"), policy=hour, disk=ROOMY), at=T0 + 899_999).then()
    story.when(looked(image("a", 100, "x"), policy=hour, disk=ROOMY), at=T0 + 900_000)
    assert story.kinds == ["RunFinished"]


def test_images_are_removed_one_by_one_until_enough_is_free() -> None:
    images = (image("a"), image("b"), image("c"), image("p", pinned=True))
    story = scene(*images).when(looked(*images, disk=FULL), at=T0 + 9)
    story.then(
        RunStarted(
            run=1,
            operation="collect",
            trigger="period",
            at=T0 + 9,
            capacity_bytes=1000,
            available_bytes=50,
            usage_percent=95,
            wanted_bytes=150,
            candidates=(candidate("a"), candidate("b"), candidate("c")),
            kept={"pinned": 1},
        )
    )
    assert story.effects["run"] == wanted.RemoveImage(subject="run", intent="remove/1/0", id="a")
    first = done(story)
    story.when(first, at=T0 + 20).then(ImageRemoved(**of(candidate("a"))))
    story.when(first, at=T0 + 21).then()
    story.when(done(story), at=T0 + 40)
    assert story.facts[0] == ImageRemoved(**of(candidate("b")))
    finished = story.only(RunFinished)
    assert (finished.removed, finished.freed_bytes, finished.milliseconds, finished.error) == (2, 200, 31, "")
    assert finished.kept == {"pinned": 1, "enough_freed": 1}
    assert set(story.state.records) == {"c", "p"}
    assert "run" not in story.effects


def test_a_refused_removal_fails_the_run_and_the_next_image_follows() -> None:
    images = (image("a"), image("b"), image("c"))
    story = scene(*images).when(looked(*images, disk=FULL), at=T0 + 9)
    story.when(refused(story), at=T0 + 9).then(ImageNotRemoved(error="busy", **of(candidate("a"))))
    story.when(EffectFailed(effect="RemoveImage", subject="run", intent="remove/1/1", error="it hung"), at=T0 + 9)
    story.when(done(story), at=T0 + 9)
    assert story.only(RunFinished).error == (
        "wanted to free 150 bytes, but freed 100 bytes space with errors in image deletion: [busy, it hung]"
    )
    assert story.reasons_and_texts == ()
    assert story.state.failures == 1
    assert set(story.state.records) == {"a", "b"}


def test_an_image_that_has_already_been_removed() -> None:
    images = (image("a"), image("b"))
    story = scene(*images).when(looked(*images, disk=FULL), at=T0 + 9)
    story.when(looked(image("b")), at=T0 + 10).then(ImagesChanged(at=T0 + 10, used_until=T0 + 9, gone=("a",)))
    story.when(done(story), at=T0 + 11).then(ImageRemoved(**of(candidate("a"))))


def test_a_run_that_frees_too_little_is_reported() -> None:
    story = scene(image("a", 50)).when(looked(image("a", 50), disk=FULL), at=T0 + 9)
    story.when(done(story), at=T0 + 9)
    text = (
        "Failed to garbage collect required amount of images. Attempted to free 150 bytes, but only found 50 bytes "
        "eligible to free."
    )
    story.then_kube_events(("FreeDiskSpaceFailed", text))
    # The second consecutive failure is reported.
    story.when(looked(disk=FULL), at=T0 + 300)
    assert [reason for reason, _ in story.reasons_and_texts] == ["FreeDiskSpaceFailed", "ImageGCFailed"]
    story.when(looked(disk=ROOMY), at=T0 + 600).then_kube_events()
    assert story.state.failures == 0


def test_an_unreadable_disk_and_one_without_capacity() -> None:
    story = scene(image("a")).when(looked(image("a"), disk=signals.Disk(error="gone")), at=T0 + 9)
    assert story.only(RunFinished).error == "gone"
    story.then_kube_events()
    story = scene(image("a")).when(looked(image("a"), disk=signals.Disk()), at=T0 + 9)
    story.then_kube_events(("InvalidDiskCapacity", "invalid capacity 0 on image filesystem"))


AGE = image_gc.Policy(min_age_milliseconds=0, max_age_milliseconds=1_000)
OLD = T0 + 5_000


def test_images_above_the_maximum_age_go_first_and_count_as_freed() -> None:
    images = (image("a"), image("b"), image("c", 100, "x"))
    story = scene(*images, policy=AGE)
    story.when(looked(image("a"), image("b"), image("c"), looked_before=OLD - 10, policy=AGE), at=OLD)
    story.when(looked(image("a"), image("b"), image("c"), policy=AGE, disk=FULL), at=OLD)
    begun = story.only(RunStarted)
    assert begun.candidates == (candidate("a", reason="age"), candidate("b", reason="age"))
    assert (begun.wanted_bytes, begun.read_again) == (0, True)
    story.when(done(story), at=OLD)
    story.when(done(story), at=OLD)
    assert story.kinds == ["ImageRemoved"]
    # The disk is measured again before anything is removed for disk space.
    assert story.effects["run"] == wanted.Look(subject="run", intent="read/1")
    story.when(looked(image("c"), policy=AGE, disk=ROOMY), at=OLD).then()
    story.when(looked(image("c"), policy=AGE, disk=ROOMY, intent="read/1"), at=OLD)
    assert story.kinds == ["DiskReadAgain", "RunFinished"]
    assert story.only(RunFinished).freed_bytes == 200
    assert story.only(RunFinished).kept == {"below_threshold": 1}


def test_the_disk_is_measured_again_after_the_removal_of_old_images() -> None:
    images = (image("a"), image("b", 100, "x"), image("c", 100, "x"))
    story = scene(*images, policy=AGE)
    story.when(looked(image("a"), image("b"), image("c"), looked_before=OLD - 10, policy=AGE), at=OLD)
    story.when(looked(image("a"), image("b"), image("c"), policy=AGE, disk=FULL), at=OLD)
    begun = story.only(RunStarted)
    # According to the sizes, 50 more bytes have to be freed: layers shared with other images were not removed.
    assert (begun.candidates, begun.wanted_bytes) == ((candidate("a", reason="age"),), 50)
    assert begun.kept == {"not_tried": 2}
    story.when(done(story), at=OLD)
    still = signals.Disk(capacity_bytes=1000, available_bytes=60)
    story.when(looked(image("b"), image("c"), policy=AGE, disk=still, intent="read/1"), at=OLD + 5)
    again = story.only(DiskReadAgain)
    assert (again.wanted_bytes, again.usage_percent, again.available_bytes) == (140, 94, 60)
    assert again.candidates == (candidate("b"), candidate("c"))
    assert story.effects["run"] == wanted.RemoveImage(subject="run", intent="remove/1/1", id="b")
    story.when(done(story), at=OLD + 6)
    story.when(done(story), at=OLD + 7)
    finished = story.only(RunFinished)
    assert (finished.removed, finished.freed_bytes, finished.wanted_bytes, finished.error) == (3, 300, 140, "")


def test_a_run_fails_if_the_disk_cannot_be_measured_again() -> None:
    story = scene(image("a"), image("b"), policy=AGE)
    story.when(looked(image("a"), image("b", 100, "x"), policy=AGE, disk=FULL), at=OLD)
    story.when(done(story), at=OLD)
    failed = EffectFailed(effect="Look", subject="run", intent="read/1", error="it hung", timed_out=True)
    story.when(failed, at=OLD)
    assert (story.only(RunFinished).removed, story.only(RunFinished).error) == (1, "it hung")
    assert "run" not in story.effects
    # A result without a run changes nothing.
    assert DECIDER.evolve(story.state, DiskReadAgain(run=7)) is story.state


def test_a_refused_removal_of_an_old_image_ends_the_run() -> None:
    images = (image("a"), image("b", 10, "x"))
    story = scene(*images, policy=AGE)
    story.when(looked(image("a"), image("b", 10), looked_before=OLD - 10, policy=AGE), at=OLD)
    full = signals.Disk(capacity_bytes=1000, available_bytes=0)
    story.when(looked(image("a"), image("b", 10), policy=AGE, disk=full), at=OLD)
    assert [one.reason for one in story.only(RunStarted).candidates] == ["age"]
    story.when(refused(story), at=OLD)
    finished = story.only(RunFinished)
    assert finished.error == "wanted to free images older than 1s, encountered errors in image deletion: busy"
    assert finished.kept == {"not_tried": 1}


def test_old_images_are_removed_even_if_the_disk_cannot_be_measured() -> None:
    story = scene(image("a"), policy=AGE)
    story.when(looked(image("a"), policy=AGE, disk=signals.Disk(error="gone")), at=OLD)
    assert story.only(RunStarted).error == "gone"
    story.when(done(story), at=OLD)
    story.when(looked(policy=AGE, disk=signals.Disk(error="gone"), intent="read/1"), at=OLD)
    assert (story.only(RunFinished).removed, story.only(RunFinished).error) == (1, "gone")


def test_a_run_can_be_requested() -> None:
    images = (image("a"), image("b", 100, "x"))
    story = scene(*images).when(image_gc.CollectImages(request="r1", unused=True))
    story.then(RunRequested(operation="remove_unused", trigger="request", request="r1"))
    assert story.effects["run"] == wanted.Look(subject="run", intent="look/1")
    story.when(looked(*images, disk=FULL), at=T0 + 9).then()
    story.when(looked(*images, disk=FULL, intent="look/4"), at=T0 + 9).then()
    story.when(looked(*images, disk=ROOMY, intent="look/1"), at=T0 + 9)
    assert story.only(RunStarted).candidates == (candidate("a", reason="unused"),)
    assert story.only(RunStarted).wanted_bytes is None
    assert story.only(RunStarted).capacity_bytes == ROOMY.capacity_bytes
    story.when(looked(*images, disk=FULL), at=T0 + 10).then()
    story.when(refused(story), at=T0 + 11)
    assert story.only(RunFinished).error == (
        "wanted to free all that are not used, but freed 0 bytes space with errors in image deletion: busy"
    )
    assert story.state.asked == ()
    assert story.state.failures == 0


def test_a_requested_run_removes_all_unused_images() -> None:
    story = scene(image("a")).when(image_gc.CollectImages(request="r1", unused=True))
    story.when(looked(image("a"), disk=signals.Disk(error="gone"), intent="look/1"), at=T0 + 9)
    story.when(done(story), at=T0 + 9)
    assert (story.only(RunFinished).removed, story.only(RunFinished).error) == (1, "")
    story.then_kube_events()


def test_requested_runs_queue_and_precede_periodic_ones() -> None:
    images = (image("a"), image("b"))
    story = scene(*images).when(looked(*images, disk=FULL), at=T0 + 9)
    story.when(image_gc.CollectImages(request="r1")).when(image_gc.CollectImages(request="r2"))
    story.when(done(story), at=T0 + 9)
    story.when(done(story), at=T0 + 9)
    assert story.only(RunFinished).trigger == "period"
    for number, request in ((1, "r1"), (2, "r2")):
        assert story.effects["run"].intent == f"look/{number}"
        story.when(looked(disk=ROOMY, intent=f"look/{number}"), at=T0 + 9)
        assert story.only(RunFinished).request == request
    story.when(looked(disk=ROOMY, intent="look/2"), at=T0 + 9).then()


def test_a_full_disk_requests_one_run() -> None:
    gone = kernel.BallastGivenUp(freed_bytes=1, error="full")
    story = scene().when(gone).then(RunRequested(operation="collect", trigger="disk"))
    story.when(gone).then()


def test_a_failed_inventory_fails_the_run() -> None:
    failed = EffectFailed(effect="Look", subject="run", intent="look/1", error="it hung", timed_out=True)
    story = given(DECIDER).when(failed).then()
    story.when(image_gc.CollectImages(request="r1")).when(failed, at=T0)
    story.then(RunFinished(run=1, operation="collect", trigger="request", request="r1", at=T0, error="it hung"))


def test_unexpected_results_are_ignored() -> None:
    scene().when(signals.RemovalDone(subject="run", intent="remove/1/0")).then()


def test_unknown_events_change_nothing() -> None:
    state = scene(image("a")).state
    assert DECIDER.evolve(state, kernel.ClockJumped(by_milliseconds=5)) is state
    assert DECIDER.evolve(state, image_gc.RunEvent(run=3)) is state
    assert not DECIDER.evolve(state, ImagesChanged(at=T0, used_until=0, gone=("a", "z"))).records


def test_a_threshold_of_100_percent_disables_runs_for_disk_space() -> None:
    never = image_gc.Policy(high_threshold_percent=100)
    assert set(given(DECIDER, PolicySet(node="node", policy=never)).effects) == {"usage"}
