"""The tools of the crash matrix itself: crash points, samples of them, and the comparison of records."""

import msgspec
import pytest

from chronolet_schemas import pod
from chronolet_schemas.envelope import Entry, Position
from tests.e2e.crash_matrix.run_record import RunRecord, difference, of_last_attempt, record_of
from tests.e2e.fault_injection import points
from tests.e2e.fault_injection.points import Point
from tests.e2e.journal import Line

NAMES = [
    "step/before pod/2 pod.ImageReady+pod.ContainerStartRequested",
    "step/after pod/2 pod.ImageReady+pod.ContainerStartRequested",
    "effect/before docker.remove pod/default/web dead/" + "a" * 64,
    "step/before pod/2 pod.ImageReady",
    "step/after pod/2 pod.ImageReady",
]


def test_each_announcement_is_a_point_identified_by_its_rarest_event() -> None:
    assert [str(point) for point in points.all_points(NAMES)] == [
        "step/before pod/2 pod.ContainerStartRequested #1",
        "step/after pod/2 pod.ContainerStartRequested #1",
        "effect/before docker.remove pod/default/web dead/ID #1",
        "step/before pod/2 pod.ImageReady #2",
        "step/after pod/2 pod.ImageReady #2",
    ]


def test_a_step_with_the_requested_event_is_identified_by_it() -> None:
    found = [str(point) for point in points.all_points(NAMES, identified_by="pod.ImageReady")]
    assert found[0] == "step/before pod/2 pod.ImageReady #1"
    assert found[3] == "step/before pod/2 pod.ImageReady #2"


def test_a_point_does_not_depend_on_how_messages_fall_into_steps() -> None:
    in_one = ["step/before pod/2 pod.ImageReady+pod.ImageReady+pod.ContainerStartRequested", NAMES[2]]
    common = points.reached_by_all([NAMES, in_one])
    assert Point(place="step/before pod/2", type="pod.ImageReady", nth=2) in common
    assert Point(place="step/after pod/2", type="pod.ImageReady", nth=2) not in common


def test_a_sample_has_one_point_of_each_stratum() -> None:
    found = points.sample(points.all_points(NAMES))
    assert [point.stratum for point in found] == [
        "step/before pod.ContainerStartRequested",
        "step/after pod.ContainerStartRequested",
        "effect/before docker.remove pod dead",
        "step/before pod.ImageReady",
        "step/after pod.ImageReady",
    ]
    assert [str(point).partition(" ")[0] for point in points.halved(found)] == [
        "step/before",
        "effect/before",
        "step/before",
    ]


def record(*events: pod.PodEvent, docker: dict[str, list[str]] | None = None) -> RunRecord:
    lines = [
        Line(Entry(Position(1, n), "pod.X@1", "pod/default/web", event.subject(), "pod/2#1", "", b""), event)
        for n, event in enumerate(events)
    ]
    return record_of(
        lines,
        docker or {"chrono_app_web_default_u1_0": ["create", "start"]},
        (),
        {},
        lambda text: text.replace("u1", "UID"),
    )


EXITED = pod.ContainerExited(
    pod="default/web",
    uid="u1",
    container="app",
    attempt=0,
    id="x",
    exit_code=1,
    reason="Error",
    started_at=1,
    finished_at=2,
)
LATER = msgspec.structs.replace(EXITED, id="y", started_at=7, finished_at=8)


@pytest.mark.parametrize(
    "other",
    [
        record(EXITED, EXITED),
        record(msgspec.structs.replace(EXITED, exit_code=0)),
        record(msgspec.structs.replace(EXITED, attempt=1)),
        record(msgspec.structs.replace(EXITED, reason="OOMKilled")),
        record(EXITED, docker={"chrono_app_web_default_u1_0": ["create", "start", "start"]}),
        record(EXITED, docker={"chrono_app_web_default_u1_1": ["create", "start"]}),
    ],
)
def test_a_different_record_is_detected(other: RunRecord) -> None:
    assert difference(record(EXITED), record(LATER)) == "", "times and ids do not matter"
    assert difference(record(EXITED), other) != ""


def test_of_a_record_with_failed_attempts_only_the_last_attempt_counts() -> None:
    complete = msgspec.structs.replace(
        record(),
        pod={"sandbox": ["SandboxStartFailed {}", "SandboxStarted {}"]},
        docker={"app": ["create", "destroy", "create", "start"], "unknown": ["destroy"]},
        pleg_events={"app 0": ["ContainerRemoved", "ContainerStarted"], "POD 1": ["ContainerRemoved"]},
    )
    last = of_last_attempt(complete)
    assert last.pod == {"sandbox": ["SandboxStarted {}"]}
    assert last.docker == {"app": ["create", "start"], "unknown": ["destroy"]}
    assert last.pleg_events == {"app 0": ["ContainerStarted"]}
