"""When the keeper archives the outcomes of probes, and when it deletes old archive files."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.keeper import signals, wanted
from chronolet.keeper.decider import decider
from chronolet.keeper.policy import Policy
from chronolet.kernel.decider import EffectFailed
from chronolet_schemas import keeper
from chronolet_schemas.envelope import Event
from tests.deciders.given import Scene, given

T0 = 1_000_000
POLICY = Policy(probes_chunk=10, probes_oldest=500, probes_max_age=1_000, first_retry=60, longest_retry=200, node="n")
WRITTEN: dict[str, Any] = {"file": "f", "outcomes": 7, "size_bytes": 9, "sha256": "abc"}
DONE = signals.ProbeArchiveDone(subject="probes", intent="probes/1", **WRITTEN)
ARCHIVED = keeper.ProbesArchived(file="f", after="0-0", upto="5-1", outcomes=7, size_bytes=9, sha256="abc")


def scene(*events: Event, policy: Policy = POLICY) -> Scene:
    return given(decider(policy), *events)


def measured(upto: str = "5-1", segments: int = 10, begun_at: int = T0, **more: Any) -> signals.ProbesMeasured:
    return signals.ProbesMeasured(upto=upto, segments=segments, begun_at=begun_at, **more)


def requested(upto: str = "5-1", after: str = "0-0") -> keeper.ProbeArchiveRequested:
    return keeper.ProbeArchiveRequested(after=after, upto=upto)


def archived(upto: str) -> tuple[Event, ...]:
    return (
        requested(upto),
        keeper.ProbesArchived(file="f", after="0-0", upto=upto, outcomes=1, size_bytes=1, sha256="abc"),
    )


def job(scene: Scene) -> Any:
    return scene.effects.get("probes")


# -- archiving
@pytest.mark.parametrize(
    ("found", "at"),
    [
        (measured(segments=10), T0),
        (measured(segments=1), T0 + 500),
        (measured(segments=1, is_full=True), T0),
    ],
)
def test_enough_old_or_many_segments_are_archived(found: signals.ProbesMeasured, at: int) -> None:
    story = scene().when(found, at=at).then(requested())
    assert job(story) == wanted.ArchiveProbes(subject="probes", intent="probes/1", after="0-0", upto="5-1")


def test_a_few_new_segments_wait() -> None:
    scene().when(measured(segments=9), at=T0 + 499).then()


def test_files_alone_are_no_reason_to_archive() -> None:
    scene().when(signals.ProbesMeasured(files=("0-0..999999-0.probes",)), at=T0 + 500).then()


def test_one_job_at_a_time() -> None:
    scene(requested()).when(measured("9-1"), at=T0 + 9_000).then()


def test_an_archived_part_is_recorded_and_the_next_file_begins_there() -> None:
    story = scene(requested()).when(DONE).then(ARCHIVED)
    assert job(story) is None
    story.when(DONE).then()
    story.when(measured("5-1"), at=T0).then()  # from before the file was written
    story.when(measured("9-1"), at=T0).then(requested("9-1", after="5-1"))
    assert job(story) == wanted.ArchiveProbes(subject="probes", intent="probes/2", after="5-1", upto="9-1")


def test_segments_that_the_file_lacks_are_recorded() -> None:
    done = signals.ProbeArchiveDone(subject="probes", intent="probes/1", skipped=3, **WRITTEN)
    scene(requested()).when(done).then(keeper.ProbesArchived(after="0-0", upto="5-1", skipped=3, **WRITTEN))


def test_the_log_is_archived_at_the_same_time() -> None:
    story = scene(requested(), keeper.ArchiveRequested(after="0-0", upto="7-7"))
    assert {"job", "probes"} <= set(story.effects)
    refused = signals.JobRefused(subject="job", intent="job/1", error="disk")
    story.when(refused, at=T0)
    assert (story.state.archive_error, job(story) is None) == ("disk", False)


@pytest.mark.parametrize(
    "failure",
    [
        signals.JobRefused(subject="probes", intent="probes/1", error="disk"),
        EffectFailed(effect="ArchiveProbes", subject="probes", intent="probes/1", error="disk"),
    ],
)
def test_a_failure_is_reported_once_and_retried_with_back_off(failure: signals.JobRefused | EffectFailed) -> None:
    story = scene(requested()).when(failure, at=T0)
    story.then(keeper.ProbeArchiveFailed(error="disk", retry_at=T0 + 60))
    story.then_kube_events(("ProbeArchiveFailed", "disk"))
    assert story.state.problem == "no probe outcomes can be archived: disk"
    assert "problem" in story.effects
    story.when(measured(), at=T0 + 59).then()
    story.when(measured("6-1"), at=T0 + 60).then(requested("6-1"))
    again = signals.JobRefused(subject="probes", intent="probes/2", error="disk")
    story.when(again, at=T0).then(keeper.ProbeArchiveFailed(error="disk", retry_at=T0 + 120)).then_kube_events()
    story.when(measured("6-1"), at=T0 + 120).then(requested("6-1"))
    done = signals.ProbeArchiveDone(
        subject="probes", intent="probes/3", file="f", outcomes=7, size_bytes=9, sha256="abc"
    )
    story.when(done).then(
        keeper.ProbesArchived(file="f", after="0-0", upto="6-1", outcomes=7, size_bytes=9, sha256="abc")
    ).then_kube_events(("ProbeArchiveResumed", "Probe outcomes are archived again"))
    assert story.state.problem == ""


# -- deleting
OLD = f"0-0..{T0}-1.probes"
NEWER = f"{T0}-1..{T0 + 700}-0.probes"
FAR = f"{T0 + 10**9}-0"
"""The id of a segment that makes all of these files old."""


def test_files_are_deleted_once_their_newest_segment_is_older_than_the_policy_keeps() -> None:
    found = signals.ProbesMeasured(files=(OLD, NEWER, "other"))
    scene(*archived(FAR)).when(found, at=T0 + 1_000).then()
    story = scene(*archived(FAR)).when(found, at=T0 + 1_001)
    story.then(keeper.ProbeDeletionRequested(files=(OLD,), upto=f"{T0}-1"))
    assert job(story) == wanted.DeleteProbes(subject="probes", intent="probes/2", files=(OLD,))
    story.when(found, at=T0 + 1_001).then()
    story.when(signals.ProbeDeletionDone(subject="probes", intent="probes/2"))
    story.then(keeper.ProbesDeleted(files=(OLD,), upto=f"{T0}-1"))
    assert (job(story), story.state.probes.deleted) == (None, f"{T0}-1")


def test_a_clock_that_is_ahead_of_the_archived_segments_deletes_nothing() -> None:
    found = signals.ProbesMeasured(files=(OLD,))
    scene().when(found, at=T0 + 10**9).then()
    scene(*archived(f"{T0 + 1_000}-0")).when(found, at=T0 + 10**9).then()
    story = scene(*archived(f"{T0 + 1_001}-0")).when(found, at=T0 + 10**9)
    story.then(keeper.ProbeDeletionRequested(files=(OLD,), upto=f"{T0}-1"))


def test_each_new_file_lets_a_few_old_ones_be_deleted() -> None:
    """Both clocks are ahead: segments wait again a minute later, but less than an hour has been recorded."""
    names = tuple(f"{number}-0..{number + 1}-0.probes" for number in range(9))
    found = measured("6-1", segments=1, begun_at=T0 + 10**9, files=names)
    story = scene(*archived(FAR)).when(found, at=T0 + 10**9)
    story.then(keeper.ProbeDeletionRequested(files=names[:4], upto="4-0"))
    story.when(signals.ProbeDeletionDone(subject="probes", intent="probes/2"))
    left = measured("6-1", segments=1, begun_at=T0 + 10**9, files=names[4:])
    for minute in range(8):
        story.when(left, at=T0 + 10**9 + minute).then()
    next_end = f"{T0 + 10**9 + 60}-0"
    story.when(measured(next_end, begun_at=T0 + 10**9, files=names[4:]), at=T0 + 10**9 + 60)
    story.then(requested(next_end, after=FAR))
    story.when(signals.ProbeArchiveDone(subject="probes", intent="probes/3", **WRITTEN))
    story.when(left, at=T0 + 10**9 + 61).then(keeper.ProbeDeletionRequested(files=names[4:8], upto="8-0"))


def test_old_files_do_not_hold_up_archiving() -> None:
    names = tuple(f"{number}-0..{number + 1}-0.probes" for number in range(9))
    found = measured(f"{T0 + 10**9}-9", files=names)
    scene().when(found, at=T0 + 10**9).then(requested(f"{T0 + 10**9}-9"))
    story = scene(*archived(FAR), keeper.ProbeDeletionRequested(files=names[:1], upto="1-0"))
    story.when(signals.ProbeDeletionDone(subject="probes", intent="probes/2"))
    story.when(found, at=T0 + 10**9).then(requested(f"{T0 + 10**9}-9", after=FAR))


def test_several_old_files_are_deleted_together() -> None:
    scene(*archived(FAR)).when(signals.ProbesMeasured(files=(OLD, NEWER)), at=T0 + 9_000).then(
        keeper.ProbeDeletionRequested(files=(OLD, NEWER), upto=f"{T0 + 700}-0")
    )


def test_nothing_is_deleted_without_a_limit() -> None:
    story = scene(*archived(FAR), policy=Policy(probes_max_age=0))
    story.when(signals.ProbesMeasured(files=(OLD,)), at=T0 + 10**12).then()


def test_a_failed_deletion_does_not_stop_archiving() -> None:
    story = scene(*archived(FAR)).when(measured(str(f"{T0}-9"), files=(OLD,)), at=T0 + 5_000)
    failed = signals.JobRefused(subject="probes", intent="probes/2", error="read-only")
    story.when(failed, at=T0 + 5_000).then(
        keeper.ProbeDeletionFailed(error="read-only", retry_at=T0 + 5_060)
    ).then_kube_events(("ProbeDeletionFailed", "read-only"))
    # Readiness does not depend on old files.
    assert (story.state.problem, "problem" in story.effects) == ("", False)
    later = f"{T0 + 10**9}-9"
    story.when(measured(later, files=(OLD,)), at=T0 + 5_059).then(requested(later, after=FAR))
    story.when(signals.ProbeArchiveDone(subject="probes", intent="probes/3", **WRITTEN))
    story.when(measured(later, files=(OLD,)), at=T0 + 5_060).then(
        keeper.ProbeDeletionRequested(files=(OLD,), upto=f"{T0}-1")
    )
    story.when(signals.ProbeDeletionDone(subject="probes", intent="probes/4"))
    story.then(keeper.ProbesDeleted(files=(OLD,), upto=f"{T0}-1"))
    story.then_kube_events(("ProbeDeletionResumed", "Old files of probe outcomes are deleted again"))
