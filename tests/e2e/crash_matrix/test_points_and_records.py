"""The crash matrix's own tools: which points there are, which are taken, and that a difference is seen."""

import msgspec
import pytest

from chronolet_schemas import pod
from chronolet_schemas.envelope import Entry, Position
from tests.e2e.crash_matrix.run_record import Story, difference, of_the_last_try, tell
from tests.e2e.fault_injection import points
from tests.e2e.fault_injection.points import Point
from tests.e2e.journal import Line

LIFE = [
    "step/before pod/2 pod.ImageReady+pod.ContainerStartRequested",
    "step/after pod/2 pod.ImageReady+pod.ContainerStartRequested",
    "effect/before docker.remove pod/default/web dead/" + "a" * 64,
    "step/before pod/2 pod.ImageReady",
    "step/after pod/2 pod.ImageReady",
]


def test_each_announcement_is_a_point_told_by_its_rarest_event() -> None:
    assert [str(point) for point in points.all_points(LIFE)] == [
        "step/before pod/2 pod.ContainerStartRequested #1",
        "step/after pod/2 pod.ContainerStartRequested #1",
        "effect/before docker.remove pod/default/web dead/ID #1",
        "step/before pod/2 pod.ImageReady #2",
        "step/after pod/2 pod.ImageReady #2",
    ]


def test_a_step_with_a_wanted_event_goes_by_that_one() -> None:
    told = [str(point) for point in points.all_points(LIFE, told_by="pod.ImageReady")]
    assert told[0] == "step/before pod/2 pod.ImageReady #1"
    assert told[3] == "step/before pod/2 pod.ImageReady #2"


def test_a_point_is_the_same_however_messages_fall_into_steps() -> None:
    in_one = ["step/before pod/2 pod.ImageReady+pod.ImageReady+pod.ContainerStartRequested", LIFE[2]]
    common = points.reached_by_all([LIFE, in_one])
    assert Point(place="step/before pod/2", type="pod.ImageReady", nth=2) in common
    assert Point(place="step/after pod/2", type="pod.ImageReady", nth=2) not in common


def test_a_sample_has_one_of_each_kind() -> None:
    found = points.sample(points.all_points(LIFE))
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


def story(*events: pod.PodEvent, docker: dict[str, list[str]] | None = None) -> Story:
    lines = [
        Line(Entry(Position(1, n), "pod.X@1", "pod/default/web", event.subject(), "pod/2#1", "", b""), event)
        for n, event in enumerate(events)
    ]
    return tell(
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
        story(EXITED, EXITED),
        story(msgspec.structs.replace(EXITED, exit_code=0)),
        story(msgspec.structs.replace(EXITED, attempt=1)),
        story(msgspec.structs.replace(EXITED, reason="OOMKilled")),
        story(EXITED, docker={"chrono_app_web_default_u1_0": ["create", "start", "start"]}),
        story(EXITED, docker={"chrono_app_web_default_u1_1": ["create", "start"]}),
    ],
)
def test_another_story_is_told_apart(other: Story) -> None:
    assert difference(story(EXITED), story(LATER)) == "", "times and ids make no difference"
    assert difference(story(EXITED), other) != ""


def test_of_a_story_with_failed_tries_only_the_last_one_counts() -> None:
    whole = msgspec.structs.replace(
        story(),
        pod={"sandbox": ["SandboxStartFailed {}", "SandboxStarted {}"]},
        docker={"app": ["create", "destroy", "create", "start"], "unknown": ["destroy"]},
        seen={"app 0": ["ContainerRemoved", "ContainerStarted"], "POD 1": ["ContainerRemoved"]},
    )
    last = of_the_last_try(whole)
    assert last.pod == {"sandbox": ["SandboxStarted {}"]}
    assert last.docker == {"app": ["create", "start"], "unknown": ["destroy"]}
    assert last.seen == {"app 0": ["ContainerStarted"]}
