"""Which entries an answer needs, and how they become lives and runs."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.history.why import causes
from chronolet.history.why.facts import concerns_answer, wanted, written_after
from chronolet_schemas import codec, image_gc, kube_events, manifests, pleg, pod, qos, registry
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.times import Stamp
from tests.history.why.happenings import FIRST, POD
from tests.history.why.stories import APP, NAME, NOON, SECOND, UID, Story

DIED = pleg.ContainerDied(**APP, attempt=0, id="app0", exit_code=1, reason="Error", started_at=NOON, finished_at=NOON)
SHOWN = kube_events.Recorded(object_kind="Pod", name="web", severity="Normal", reason="r", message="m")
OTHERS = {**APP, "pod": "default/web-2", "attempt": 0, "id": "x"}


def entry(entity: str, event: Event) -> Entry:
    return Entry(Position(NOON, 1), registry.type_of(type(event)), entity, "", "pod#1", "", codec.encode(event))


@pytest.mark.parametrize(
    ("entity", "event", "needed"),
    [
        ("pod/default/web", pod.PodEnded(**POD), True),
        ("pod/default/web-2", pod.PodEnded(pod="default/web-2", uid="u"), False),
        ("prober/default/web/app/Liveness", pod.PodEnded(**POD), True),
        ("prober/default/web-2/app/Liveness", pod.PodEnded(**POD), False),
        ("pleg/node", DIED, True),
        ("pleg/node", pleg.StreamLost(error="x"), True),
        ("pleg/node", pleg.RelistWorking(containers=1), False),
        ("manifests/node", manifests.PodRefused(pod=NAME, source="apply", reason="x"), True),
        ("manifests/node", manifests.PodRefused(pod="default/db", source="apply", reason="x"), False),
        ("image_gc/node", image_gc.ImagesChanged(at=1, used_until=1), True),
        ("qos/node", qos.PodReleased(pod=NAME, uid=UID), False),
        (
            "pod/default/web",
            kube_events.Recorded(object_kind="Pod", name="web", severity="Normal", reason="r", message="m"),
            False,
        ),
    ],
)
def test_only_entries_about_the_pod_and_what_may_have_happened_to_it_are_read(
    entity: str, event: Event, *, needed: bool
) -> None:
    assert concerns_answer(entry(entity, event), NAME) is needed
    assert wanted(NAME).meets(entry(entity, event)) or not needed


def test_another_pod_whose_name_begins_alike_is_passed_over() -> None:
    story = Story().runs().pleg(pleg.OutOfMemory(**OTHERS)).dies(137).restarts(1)
    assert story.causes()[0] is causes.Unexplained


@pytest.mark.parametrize(("upto", "expected"), [(4, NOON + 3 * SECOND), (3, NOON + 3 * SECOND), (2, 0), (1, 0)])
def test_the_silence_after_a_death_ends_with_the_next_entry_of_any_kind(upto: int, expected: int) -> None:
    times = (NOON - SECOND, NOON, NOON + 3 * SECOND, NOON + 4 * SECOND)
    stamps = [Stamp(Position(at, number), at) for number, at in enumerate(times, start=1)]
    assert written_after(stamps, NOON, stamps[upto - 1].position) == expected


def test_a_start_that_failed_after_the_creation_counts_as_a_run() -> None:
    failed = pod.ContainerStartFailed(**FIRST, id="app0", reason="RunContainerError", message="no sh", failed_at=NOON)
    story = Story().has(failed).restarts(1)
    assert story.causes() == [causes.StartFailed, causes.Exited, causes.Restarted]
    assert "because Docker could not start it: RunContainerError: no sh (exit code 128)" in story.sentence()


def test_a_stop_that_was_held_back_on_an_overloaded_machine_says_for_how_long() -> None:
    kill: dict[str, Any] = {**APP, "probe": "Liveness", "id": "app0", "started_at": NOON, "at": NOON}
    story = Story().runs().probe_fails("Liveness", 3).pleg(pleg.ProbeKillReleased(**kill, held_milliseconds=12_000))
    sentence = story.stop("LivenessFailed").dies(137, sent=(15, 9)).restarts(1).sentence()
    assert "the stop was held back for 12.0 s" in sentence


def test_facts_that_precede_the_record_of_a_start_belong_to_its_run() -> None:
    named: dict[str, Any] = {**APP, "attempt": 0, "id": "app0"}
    story = Story().pleg(pleg.ContainerStarted(started_at=NOON, **named), pleg.OutOfMemory(**named))
    story.has(pod.ContainerStarted(started_at=NOON, **named)).dies(137)
    assert story.restarts(1).causes()[0] is causes.OutOfMemory


def test_a_repeated_record_of_a_start_is_no_restart() -> None:
    story = Story().runs()
    again = pod.ContainerStarted(**FIRST, id="app0", started_at=story.history.lives[-1].runs[-1].started_at + 900)
    story.has(again)
    assert story.history.lives[-1].restarts() == []
