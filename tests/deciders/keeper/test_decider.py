"""When the keeper archives and trims the log, releases shards and reports the disk reserve."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.keeper import signals, wanted
from chronolet.keeper.decider import DECIDER, decider
from chronolet.keeper.policy import Policy, trim_limit
from chronolet.keeper.state import State
from chronolet.kernel.kind import EffectFailed
from chronolet_schemas import keeper, kernel
from chronolet_schemas.envelope import START, Event, Position
from tests.deciders.given import Scene, given

POLICY = Policy(chunk_entries=100, oldest=1_000_000, let_go=7_000, first_retry=60, longest_retry=200, node="n")
T0 = 5_000


def at(n: int) -> str:
    """Return the position of entry `n`; entries are one millisecond apart, from T0 on."""
    return f"{T0 + n}-{n}"


def measured(last: int, archived: int = 0, **more: Any) -> signals.LogMeasured:
    fields = {"begun_at": T0, "needed": {}, "unowned": {}} | more
    return signals.LogMeasured(last=at(last), archived=at(archived) if archived else "0-0", **fields)


def requested(after: int, upto: int) -> keeper.ArchiveRequested:
    return keeper.ArchiveRequested(after=at(after) if after else "0-0", upto=at(upto))


def written(first: int, last: int) -> keeper.ArchiveWritten:
    return keeper.ArchiveWritten(
        file=f"{first}", first=at(first), last=at(last), events=last - first + 1, size_bytes=10, sha256="abc"
    )


def scene(*events: Event) -> Scene:
    return given(decider(POLICY), *events)


def two_archives() -> tuple[Event, ...]:
    return (requested(0, 100), written(1, 100), requested(100, 200), written(101, 200))


def job(scene: Scene) -> Any:
    return scene.effects.get("job")


def test_the_standing_effects_are_always_outstanding() -> None:
    assert set(scene().effects) == {"measure", "disk", "indexes"}
    assert DECIDER.due(State()) is None


def test_too_few_new_entries_are_not_archived() -> None:
    scene().when(measured(99), at=T0 + 99).then()


def test_enough_new_entries_are_archived() -> None:
    story = scene().when(measured(100), at=T0 + 100).then(requested(0, 100))
    assert job(story) == wanted.WriteArchive(subject="job", intent="job/1", after="0-0", upto=at(100))


def test_a_few_entries_are_archived_once_they_are_old() -> None:
    scene().when(measured(3), at=T0 + 1_000_000).then()
    scene().when(measured(3), at=T0 + 1_000_001).then(requested(0, 3))
    # The age is counted from the archived entries, not from the oldest entry in the stream.
    old = T0 + 100 + 1_000_001
    scene(requested(0, 100), written(1, 100)).when(measured(101, 100), at=old - 1).then()
    scene(requested(0, 100), written(1, 100)).when(measured(101, 100), at=old).then(requested(100, 101))
    scene(requested(0, 100), written(1, 100)).when(measured(100, 100), at=old).then()


def test_one_job_at_a_time() -> None:
    scene(requested(0, 100)).when(measured(300), at=T0 + 300).then()


def test_a_measurement_from_before_the_last_archive_file_is_ignored() -> None:
    scene(requested(0, 100), written(1, 100)).when(measured(150, 0), at=T0 + 150).then()
    scene(requested(0, 100), written(1, 100)).when(measured(200, 0), at=T0 + 200).then(requested(100, 200))
    # The server knows of an archive file that is not in the log.
    scene(requested(0, 100), written(1, 100)).when(measured(250, 150), at=T0 + 250).then(requested(150, 250))


def test_a_written_archive_file_is_recorded() -> None:
    done = signals.ArchiveDone(
        subject="job", intent="job/1", file="1", first=at(1), last=at(100), events=100, size_bytes=10, sha256="abc"
    )
    story = scene(requested(0, 100)).when(done).then(written(1, 100))
    assert job(story) is None
    story.when(done).then()


def test_results_of_another_job_are_ignored() -> None:
    scene(requested(0, 100)).when(signals.JobRefused(subject="job", intent="job/0", error="old")).then()
    scene().when(signals.JobRefused(subject="job", intent="job/1", error="no job is outstanding")).then()


def test_the_newest_archived_part_stays_in_the_stream() -> None:
    not_needed = {"pod/0": at(150), "pleg": at(180)}
    scene(requested(0, 100), written(1, 100)).when(measured(150, 100, needed=not_needed), at=T0 + 150).then()
    story = scene(*two_archives()).when(measured(220, 200, needed=not_needed), at=T0 + 220)
    story.then(keeper.TrimRequested(upto=at(100)))
    assert job(story) == wanted.TrimLog(subject="job", intent="job/3", upto=at(100))


def test_no_entry_is_trimmed_that_a_shard_still_needs() -> None:
    story = scene(*two_archives())
    story.when(measured(220, 200, needed={"pod/0": at(60), "pleg": at(220)}), at=T0 + 220)
    story.then(keeper.TrimRequested(upto=at(60)))
    story = scene(*two_archives())
    story.when(measured(220, 200, needed={"pod/0": "0-0", "pleg": at(220)}), at=T0 + 220).then()
    story.when(measured(220, 200), at=T0 + 220).then()


def test_trimming_continues_once_enough_entries_can_go() -> None:
    story = scene(*two_archives(), keeper.TrimRequested(upto=at(60)))
    story.when(signals.TrimDone(subject="job", intent="job/3", upto=at(57), removed=57))
    story.then(keeper.LogTrimmed(upto=at(57), removed=57))
    assert job(story) is None
    story.when(measured(220, 200, needed={"pod/0": at(84)}), at=T0 + 220).then()
    story.when(measured(220, 200, needed={"pod/0": at(85)}), at=T0 + 220).then(keeper.TrimRequested(upto=at(85)))


def test_a_busy_node_is_both_archived_and_trimmed() -> None:
    story = scene(*two_archives())
    busy = measured(300, 200, needed={"pod/0": at(300)})
    story.when(busy, at=T0 + 300).then(keeper.TrimRequested(upto=at(100)))
    story.when(signals.TrimDone(subject="job", intent="job/3", upto=at(100), removed=100))
    story.when(busy, at=T0 + 300).then(requested(200, 300))


def test_a_failed_job_is_retried_with_back_off() -> None:
    story, now = scene(), T0 + 100
    for failures, pause in enumerate((60, 120, 200, 200), 1):
        story.when(measured(100), at=now).then(requested(0, 100))
        refused = signals.JobRefused(subject="job", intent=f"job/{failures}", error="disk")
        story.when(refused, at=now).then(keeper.ArchiveFailed(error="disk", retry_at=now + pause))
        story.when(measured(100), at=now + pause - 1).then()
        now += pause
    story.when(measured(100), at=now)
    done = signals.ArchiveDone(
        subject="job", intent="job/5", file="1", first=at(1), last=at(100), events=100, size_bytes=10, sha256="abc"
    )
    assert story.when(done).state.failures == 0


def test_a_failed_trim_is_retried() -> None:
    story = scene(*two_archives(), keeper.TrimRequested(upto=at(100)))
    failed = EffectFailed(effect="TrimLog", subject="job", intent="job/3", error="late", timed_out=True)
    story.when(failed, at=T0 + 220).then(keeper.TrimFailed(error="late", retry_at=T0 + 280))
    needed = {"pod/0": at(200)}
    story.when(measured(220, 200, needed=needed), at=T0 + 279).then()
    story.when(measured(220, 200, needed=needed), at=T0 + 280).then(keeper.TrimRequested(upto=at(100)))
    assert job(story).intent == "job/4"


def test_a_failed_trim_does_not_stop_archiving() -> None:
    story = scene(*two_archives(), keeper.TrimRequested(upto=at(100)))
    needed = {"pod/0": at(400)}
    refused = signals.JobRefused(subject="job", intent="job/3", error="a file is missing")
    story.when(refused, at=T0 + 220).then(keeper.TrimFailed(error="a file is missing", retry_at=T0 + 280))
    story.when(measured(300, 200, needed=needed), at=T0 + 221).then(requested(200, 300))
    story.when(archive_done("job/4", 201, 300), at=T0 + 222).then(written(201, 300))
    # Its own back-off goes on, and a further file does not end it.
    assert (story.state.trim_error, story.state.trim_retry_at) == ("a file is missing", T0 + 280)
    story.when(measured(310, 300, needed=needed), at=T0 + 279).then()
    story.when(measured(310, 300, needed=needed), at=T0 + 280).then(keeper.TrimRequested(upto=at(200)))
    again = signals.JobRefused(subject="job", intent="job/5", error="still missing")
    story.when(again, at=T0 + 281).then(keeper.TrimFailed(error="still missing", retry_at=T0 + 281 + 120))
    story.when(measured(310, 300, needed=needed), at=T0 + 401).then(keeper.TrimRequested(upto=at(200)))
    story.when(signals.TrimDone(subject="job", intent="job/6", upto=at(200), removed=200))
    assert (story.state.trim_error, story.state.trim_failures, story.state.trim_retry_at) == ("", 0, 0)


def test_a_failed_archive_file_does_not_stop_trimming() -> None:
    story = scene(*two_archives(), requested(200, 300), keeper.ArchiveFailed(error="read-only", retry_at=T0 + 900))
    busy = measured(300, 200, needed={"pod/0": at(300)})
    story.when(busy, at=T0 + 300).then(keeper.TrimRequested(upto=at(100)))
    story.when(signals.TrimDone(subject="job", intent="job/4", upto=at(100), removed=100))
    assert (story.state.archive_error, story.state.retry_at) == ("read-only", T0 + 900)
    story.when(busy, at=T0 + 899).then()
    story.when(busy, at=T0 + 900).then(requested(200, 300))


def archive_done(intent: str, first: int, last: int) -> signals.ArchiveDone:
    return signals.ArchiveDone(
        subject="job",
        intent=intent,
        file=f"{first}",
        first=at(first),
        last=at(last),
        events=last - first + 1,
        size_bytes=10,
        sha256="abc",
    )


def test_the_first_failure_and_the_first_success_are_kube_events() -> None:
    story = scene(requested(0, 100))
    refused = signals.JobRefused(subject="job", intent="job/1", error="disk full")
    story.when(refused, at=T0).then_kube_events(("ArchiveFailed", "disk full"))
    assert (story.recorded[0].object_kind, story.recorded[0].name, story.recorded[0].severity) == (
        "Node",
        "n",
        "Warning",
    )
    story.when(measured(100), at=T0 + 60)
    refused = signals.JobRefused(subject="job", intent="job/2", error="disk full")
    story.when(refused, at=T0 + 60).then_kube_events()
    story.when(measured(100), at=T0 + 180)
    story.when(archive_done("job/3", 1, 100)).then_kube_events(("ArchiveResumed", "The log is archived again"))
    story.when(measured(200, 100), at=T0 + 200)
    story.when(archive_done("job/4", 101, 200)).then_kube_events()
    story.when(measured(220, 200, needed={"pod/0": at(200)}), at=T0 + 220)
    failed = signals.JobRefused(subject="job", intent="job/5", error="cannot be read")
    story.when(failed).then_kube_events(("TrimFailed", "cannot be read"))
    story.when(measured(220, 200, needed={"pod/0": at(200)}), at=T0 + 280)
    done = signals.TrimDone(subject="job", intent="job/6", upto=at(100), removed=100)
    story.when(done).then_kube_events(("TrimResumed", "The log is trimmed again"))


def test_a_defect_of_existing_files_is_reported_when_it_changes() -> None:
    story = scene().when(measured(1, incomplete="a is missing")).then()
    story.then_kube_events(("ArchiveIncomplete", "a is missing"))
    story.when(measured(1, incomplete="a is missing")).then_kube_events()
    story.when(measured(1, incomplete="a and b")).then_kube_events(("ArchiveIncomplete", "a and b"))
    # A measurement that begins now, in another process, looks at these files first; a running one goes on.
    assert (story.effects["measure"].reported, story.effects["measure"].intent) == ("a and b", "measure")
    (reason, _), *none = story.when(measured(1)).reasons_and_texts
    assert (reason, none, story.state.incomplete) == ("ArchiveComplete", [], "")
    story.when(measured(1)).then_kube_events()


def test_a_problem_is_shown_as_long_as_it_lasts() -> None:
    story = scene(*two_archives(), keeper.TrimRequested(upto=at(100)))
    assert "problem" not in story.effects
    story.when(signals.JobRefused(subject="job", intent="job/3", error="not trimmed: x"), at=T0 + 220)
    assert story.effects["problem"].problem == "not trimmed: x"
    story.when(measured(220, 200, incomplete="b is damaged"), at=T0 + 221)
    assert story.effects["problem"].problem == "not trimmed: x; b is damaged"
    story.when(measured(300, 200, incomplete="b is damaged"), at=T0 + 222)
    story.when(signals.JobRefused(subject="job", intent="job/4", error="disk full"), at=T0 + 222)
    shown = "no archive file can be written: disk full; not trimmed: x; b is damaged"
    assert story.effects["problem"].problem == shown
    story.when(measured(300, 200, needed={"pod/0": at(300)}), at=T0 + 500)
    story.when(signals.TrimDone(subject="job", intent="job/5", upto=at(100), removed=100))
    story.when(measured(300, 200), at=T0 + 501)
    story.when(archive_done("job/6", 201, 300))
    assert "problem" not in story.effects


def test_a_shard_without_owner_no_longer_holds_back_trimming_until_it_has_one() -> None:
    needed = {"prober/1": "0-0", "pod/0": at(100)}
    story = scene(*two_archives())
    story.when(measured(220, 200, needed=needed, unowned={"prober/1": T0}), at=T0 + 7_000).then()
    story.when(measured(220, 200, needed=needed, unowned={"prober/1": T0}), at=T0 + 7_001)
    story.then(keeper.ShardLetGo(shard="prober/1", unowned_since=T0))
    story.when(measured(220, 200, needed=needed, unowned={"prober/1": T0}), at=T0 + 7_002)
    story.then(keeper.TrimRequested(upto=at(100)))
    assert job(story).let_go == ("prober/1",)
    story.when(signals.TrimDone(subject="job", intent="job/3", upto=at(100), removed=100))
    story.when(measured(220, 200, needed=needed), at=T0 + 7_003).then(keeper.ShardHeldAgain(shard="prober/1"))
    assert story.state.let_go == ()


def test_release_and_restoration_of_the_disk_reserve_are_each_recorded_once() -> None:
    gone, back = signals.ReserveReleased(freed_bytes=5, error="full"), signals.ReserveRestored(size_bytes=5)
    story = scene().when(back).then()
    story.when(gone).then(kernel.BallastGivenUp(freed_bytes=5, error="full"))
    story.when(gone).then()
    story.when(back).then(kernel.BallastRestored(size_bytes=5))
    story.when(back).then()


@pytest.mark.parametrize(
    ("found", "text"),
    [("0-0", "The whole log was lost: 7 entries up to 9-7"), ("4-3", "The log lost its end after 4-3")],
)
def test_a_lost_log_is_a_kube_event(found: str, text: str) -> None:
    lost = kernel.LogLost(node="n", former_run="r", had="9-7", found=found, entries=7)
    (recorded,) = scene().when(lost).recorded
    assert (recorded.object_kind, recorded.name, recorded.reason, recorded.severity) == (
        "Node",
        "n",
        "LogLost",
        "Warning",
    )
    assert recorded.message.startswith(text)
    assert recorded.message.endswith("7 entries up to 9-7 are gone; containers were not touched")


def test_an_event_of_a_later_release_changes_nothing() -> None:
    state = State(jobs=3)
    assert DECIDER.evolve(state, kernel.ClockJumped(by_milliseconds=5)) is state


@pytest.mark.parametrize(
    ("goal", "needed", "limit"),
    [((9, 9), [(5, 5), (7, 7)], (5, 5)), ((3, 3), [(5, 5)], (3, 3)), ((9, 9), [], START)],
)
def test_the_limit_of_trimming(goal: tuple[int, int], needed: list[tuple[int, int]], limit: tuple[int, int]) -> None:
    assert trim_limit(Position(*goal), [Position(*each) for each in needed]) == Position(*limit)


def test_the_default_policy() -> None:
    usual = Policy()
    assert (usual.trim_entries, Policy(chunk_entries=1).trim_entries) == (5_000, 1)
    assert [usual.retry_at(failures, 0) for failures in (1, 2, 7, 50)] == [60_000, 120_000, 600_000, 600_000]
