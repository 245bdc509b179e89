"""`chronolet history node`: conditions, load and lag of the node over time."""

import json
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.over_time.node_load import REACTIONS, Recorder
from chronolet.testing.exported import entries_of
from chronolet_schemas import image_gc, keeper, kernel, pleg, prober, qos, registry
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.times import time_of
from tests.cli.support.busy_node import IMAGES, LIVENESS, MINUTE, PLEG, busy
from tests.cli.support.histories import RUN, SECOND, UID, WEB
from tests.cli.support.written_node import NODE, NOON, WrittenNode, columns

EXPORTED = Path(__file__).parents[2] / "histories/exported/0.2.0.dev0/run.jsonl"


def history(node: WrittenNode, *words: str) -> dict[str, Any]:
    result = node.run("history", "node", "-o", "json", *words)
    assert (result.status, result.errors) == (0, ""), result
    found: dict[str, Any] = json.loads(result.output)
    return found


def conditions(node: WrittenNode, *words: str) -> list[tuple[str, int, int | None, str]]:
    """Return what, beginning and end in minutes, and the detail."""
    return [
        (
            one["what"],
            (one["from"] - NOON) // MINUTE,
            (one["until"] - NOON) // MINUTE if "until" in one else None,
            one["detail"],
        )
        for one in history(node, *words)["conditions"]
    ]


def written(*steps: tuple[str, Event]) -> WrittenNode:
    """Return a node to which these events happen, a minute apart."""
    node = WrittenNode()
    for entity, event in steps:
        node.now += MINUTE
        node.write(entity, event)
    node.now += MINUTE
    return node


QOS, KEEPER, SHARD = "qos/node", "keeper/node", "shard/pod/0"
HELD = pleg.ProbeKillsHeldBack(at=NOON, pods=3, short_of=("cpu", "io"), kills_per_minute=2)
RESUMED = pleg.ProbeKillsResumed(at=NOON, released=0, dropped=0)


def collected(usage: int) -> image_gc.RunFinished:
    return image_gc.RunFinished(
        run=1, operation="collect", trigger="period", at=NOON, capacity_bytes=1, usage_percent=usage
    )


UNLISTED = (pleg.RelistFailing(error="e"), pleg.Unhealthy(message="m"), pleg.RelistWorking(containers=1))
UNFOLLOWED = (pleg.StreamLost(error="gone"), pleg.StreamLost(error="x"), pleg.StreamFollowed(server="s"))
FULL = (image_gc.PolicySet(node=NODE, policy=image_gc.Policy()), collected(90), collected(50))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(PLEG, HELD), (PLEG, RESUMED)], [("probe kills held back", 1, 2, "the machine is short of cpu, io")]),
        ([(PLEG, HELD)], [("probe kills held back", 1, None, "the machine is short of cpu, io")]),
        (
            [(PLEG, one) for one in UNLISTED],
            [
                ("containers cannot be listed", 1, 2, ""),
                ("containers cannot be listed", 2, 3, "no listing succeeds for too long"),
            ],
        ),
        (
            [(PLEG, one) for one in UNFOLLOWED],
            [("engine's events not followed", 1, 3, "gone")],
        ),
        ([(PLEG, pleg.StreamLost(error="gone"))], [("engine's events not followed", 1, None, "gone")]),
        (
            [(PLEG, pleg.StreamFollowed(server="docker 26", first=True))],
            [("agent follows the engine", 1, 1, "docker 26")],
        ),
        (
            [(KEEPER, kernel.BallastGivenUp(freed_bytes=1, error="e")), (KEEPER, kernel.BallastRestored(size_bytes=1))],
            [("disk full", 1, 2, "the disk reserve is released")],
        ),
        (
            [(KEEPER, keeper.ArchiveFailed(error="no space", retry_at=1))],
            [("archive", 1, None, "no archive file can be written: no space")],
        ),
        (
            [(QOS, qos.CgroupFailing(cgroup="kubepods", error="e")), (QOS, qos.CgroupWorking(cgroup="kubepods"))],
            [("cgroups fail", 1, 2, "1, such as kubepods: e")],
        ),
        (
            [(IMAGES, one) for one in FULL],
            [("disk for images above the threshold", 2, 3, "90 % after the last collection, threshold 85 %")],
        ),
        ([(SHARD, kernel.ClockJumped(by_milliseconds=-2_500))], [("clock jumped", 1, 1, "by -2.500 s")]),
        ([(SHARD, kernel.HostRestarted(error="KeyError", restarts=1))], [("actor restarted", 1, 1, "KeyError")]),
        (
            [("node/n", kernel.LogLost(node="n", former_run="r", had="1-1", found="0-0", entries=7))],
            [("entries of the log lost", 1, 1, "at least 7")],
        ),
    ],
)
def test_conditions_have_a_beginning_and_an_end(steps: Any, expected: Any) -> None:
    assert conditions(written(*steps)) == expected


def test_a_condition_that_began_before_the_time_begins_with_it() -> None:
    node = written((PLEG, HELD), (SHARD, kernel.ClockJumped(by_milliseconds=1)), (PLEG, RESUMED))
    assert conditions(node, "--from", "-2m")[0] == ("probe kills held back", 2, 3, "the machine is short of cpu, io")


def test_an_engine_outage_that_began_before_the_time_is_shown_if_it_ended_in_it() -> None:
    lost, jump, followed = UNFOLLOWED[0], kernel.ClockJumped(by_milliseconds=1), UNFOLLOWED[-1]
    node = written((PLEG, lost), (SHARD, jump), (PLEG, followed), (PLEG, followed))
    assert conditions(node, "--from", "-4m")[:1] == [("engine's events not followed", 1, 3, "since before this time")]
    assert len(conditions(node)) == 2, "the jump, and one outage: the second event ends none"


def test_the_load_is_counted_in_parts_of_the_time() -> None:
    node = busy()
    found = history(node)["load"]
    assert [one["from"] for one in found] == [NOON + at * MINUTE for at in range(11)]
    assert sum(one["entries"] for one in found) == len(node.run("log").output.splitlines())
    assert [one["containerStarts"] for one in found] == [2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert found[4]["shortOf"] == ["cpu"]
    assert found[5]["imageDiskPercent"] == 90
    assert "imageDiskPercent" not in found[4]


def lags(*entries: tuple[str, str, int, str]) -> int:
    """Return the longest lag in milliseconds. Entries: entity, type, seconds, number of the cause or another text."""
    load, positions = Recorder(0, MINUTE, MINUTE), dict[str, Position]()
    for number, (entity, name, seconds, cause) in enumerate(entries):
        positions[str(number)] = at = Position(seconds * SECOND, number)
        load.take(Entry(at, f"{name}@1", entity, "", "", str(positions.get(cause, cause)), b""), lambda: None, 0)
    return max(one.lag_milliseconds for one in load.parts)


CREATED = (WEB, "pod.ContainerCreateRequested", 1, "")
DIED = (PLEG, "pleg.ContainerDied", 31, "0")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((CREATED, DIED), 0),  # the container ran so long
        ((CREATED, DIED, (WEB, "pod.ContainerExited", 39, "1")), 8_000),
        ((CREATED, DIED, (WEB, "pod.RestartScheduled", 39, "1")), 0),
        ((CREATED, DIED, (WEB, "pod.ContainerExited", 39, "cli-request")), 0),
        ((CREATED, DIED, (WEB, "pod.ContainerExited", 39, "5-999999")), 0),
        ((CREATED, DIED, (WEB, "pod.ContainerExited", 30, "1")), 0),  # after a clock step
    ],
)
def test_lag_is_the_time_from_an_event_to_the_direct_reaction_of_another_actor(entries: Any, expected: int) -> None:
    assert lags(*entries) == expected


def test_the_lag_in_a_recorded_run_is_that_of_actors_and_not_of_what_they_wait_for() -> None:
    entries = entries_of(EXPORTED)
    load = Recorder(time_of(entries[0]), time_of(entries[-1]), MINUTE)
    for entry in entries:
        load.take(entry, lambda: None, time_of(entry))
    assert 0 < max(one.lag_milliseconds for one in load.parts) < 100


def test_the_types_of_reactions_exist() -> None:
    assert all(registry.class_of(name) for pair in REACTIONS for name in pair)


def unjudged() -> prober.ProbeUnjudged:
    return prober.ProbeUnjudged(
        pod="default/web",
        uid=UID,
        container="side",
        probe="Liveness",
        id=RUN,
        at=NOON,
        milliseconds=5,
        consecutive=1,
        for_milliseconds=1,
        stalled_milliseconds=4,
        short_of=("memory",),
    )


def test_delays_and_missing_verdicts_of_probes_are_counted() -> None:
    late = [
        prober.ProbeDelayed(
            pod="default/web", uid=UID, container="side", probe="Liveness", id=RUN, late_milliseconds=milliseconds
        )
        for milliseconds in (1_500, 900)
    ]
    node = written((LIVENESS, late[0]), (LIVENESS, late[1]), (LIVENESS, unjudged()))
    found = history(node)["load"]
    assert max(one["probeDelayMilliseconds"] for one in found) == 1_500
    assert sum(one["unjudgedProbes"] for one in found) == 1
    assert [one["shortOf"] for one in found if one["shortOf"]] == [["memory"]]


def test_the_text_has_two_tables() -> None:
    text = busy().run("history", "node").output
    first, second = (columns(part) for part in text.split("\n\n"))
    assert first[0] == ["WHAT", "FROM", "UNTIL", "DETAIL"]
    held = ["2027-01-15T08:04:40Z", "2027-01-15T08:05:42Z", "the machine is short of cpu"]
    assert first[1] == ["probe kills held back", *held]
    assert second[0] == ["TIME", "ENTRIES", "STARTS", "LAG", "PROBE DELAY", "UNJUDGED", "SHORT OF", "IMAGE DISK"]
    assert second[5][0:3] + second[5][-2:] == ["2027-01-15T08:04:00Z", "12", "1", "cpu", "<unknown>"]
    assert busy().run("history", "node", NODE).output == text
