"""Grouping entries into steps, pauses between them, and what `--only` selects."""

from collections.abc import Sequence

import click
import pytest

from chronolet.cli.replay.steps import LONGEST_SECONDS, Pace, Step, steps
from chronolet.cli.replay.wanted import TYPES, Wanted, wanted
from chronolet_schemas import codec, pod, registry
from chronolet_schemas.envelope import Entry, Position


def entry(n: int, milliseconds: int = 5, actor: str = "pod/0#1", entity: str = "pod/default/web") -> Entry:
    event = pod.SandboxBlocked(pod="default/web", uid="u", message="m")
    name = registry.type_of(type(event)) if actor else ""
    return Entry(Position(milliseconds, n), name, entity, "", actor, "", codec.encode(event))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], []),
        ([entry(1)], [[1]]),
        ([entry(1), entry(2), entry(3)], [[1, 2, 3]]),
        ([entry(1), entry(2, entity="pod/default/db")], [[1, 2]]),
        ([entry(1), entry(2, milliseconds=6)], [[1], [2]]),
        ([entry(1), entry(2, actor="pod/1#1"), entry(3)], [[1], [2], [3]]),
        ([entry(1), entry(2, actor="pod/0#2")], [[1], [2]]),
        ([entry(1), entry(0, actor=""), entry(7, actor=""), entry(2)], [[1], [0], [7], [2]]),
    ],
    ids=["none", "one", "one actor", "two entities", "later", "other shards", "a new owner", "foreign entries"],
)
def test_entries_of_one_actor_and_time_are_a_step(entries: Sequence[Entry], expected: list[list[int]]) -> None:
    assert [[one.position.n for one in step.entries] for step in steps(entries)] == expected


@pytest.mark.parametrize(
    ("speed", "times", "expected"),
    [
        (1, [1_000, 1_500, 4_000], [0, 0.5, 2.5]),
        (10, [1_000, 1_500, 4_000], [0, 0.05, 0.25]),
        (0.5, [0, 100], [0, 0.2]),
        (1, [5_000, 1_000, 2_000], [0, 0, 1]),  # the clock was set back
        (0.001, [0, 10**15, 10**15 + 1], [0, LONGEST_SECONDS, 1]),  # a clock step that is not recorded
        (1, [], []),
    ],
)
def test_pauses_are_the_recorded_ones_divided_by_the_speed(
    speed: float, times: Sequence[int], expected: Sequence[float]
) -> None:
    pace = Pace(speed)
    found = [pace.seconds_before(Step((entry(n, milliseconds=at),))) for n, at in enumerate(times)]
    assert found == pytest.approx(expected)


def test_there_is_no_pause_before_a_clock_jump() -> None:
    pace = Pace(1)
    jump = entry(2, milliseconds=900_000)._replace(type="kernel.ClockJumped@1")
    found = [pace.seconds_before(Step((one,))) for one in (entry(1), jump, entry(3, milliseconds=901_000))]
    assert found == [0, 0, 1]


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ((), Wanted(TYPES, (), everything=True)),
        (("pod/web",), Wanted(("pods",), ("data/web",), everything=False)),
        (("pod/web", "po/db"), Wanted(("pods",), ("data/web", "data/db"), everything=False)),
        (("pod/web", "devices"), Wanted(("pods", "devices"), ("data/web",), everything=False)),
        (("pod/web", "pods"), Wanted(("pods",), (), everything=False)),
        (("images,node",), Wanted(("images", "nodes"), (), everything=False)),
    ],
)
def test_only_selects_types_and_pods(only: Sequence[str], expected: Wanted) -> None:
    assert wanted(only, "data") == expected


@pytest.mark.parametrize("only", ["actors", "web", "pod/", "secret/x", "device/a"])
def test_what_cannot_be_replayed_is_a_usage_error(only: str) -> None:
    with pytest.raises(click.UsageError):
        wanted((only,), "data")


@pytest.mark.parametrize(
    ("only", "entity", "shown"),
    [
        ("pod/web", "pod/default/web", True),
        ("pod/web", "pleg/node", True),  # its event names the pod
        ("pod/db", "pod/default/web", False),
        ("devices", "devices/node", True),
        ("devices", "pod/default/web", False),
        ("nodes", "shard/pod/1", True),
        ("nodes", "image_gc/node", False),
        ("images", "image_gc/node", True),
    ],
)
def test_entries_about_what_is_asked_for_are_shown(only: str, entity: str, shown: bool) -> None:
    assert wanted((only,), "default").shows(entry(1, entity=entity)) is shown
