"""`--at`: what commands print about a moment of the past is what they printed then."""

from collections.abc import Sequence
from typing import Any

import pytest

from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from tests.cli.support.histories import (
    APP,
    RUN,
    SECOND,
    SIDE,
    TWO_CONTAINERS,
    UID,
    WEB,
    accepted,
    back_off,
    crash,
    recorded,
    start,
)
from tests.cli.support.written_node import NOON, Result, WrittenNode, columns

COMMANDS = [
    ("get", "pods"),
    ("get", "pods", "-A", "-o", "wide", "--show-labels"),
    ("get", "pods", "-A", "-o", "yaml"),
    ("get", "pod/web", "-o", "json"),
    ("get", "pods", "-l", "app=web"),
    ("get", "containers", "-o", "wide"),
    ("get", "events", "--all"),
    ("get", "pods,containers"),
    ("events", "--all", "-A", "-o", "json"),
    ("describe", "pod", "web"),
    ("describe", "pods", "-A"),
    ("get", "devices,images"),
]


def outputs(node: WrittenNode, *more: str) -> list[Result]:
    return [node.run(*words, *more) for words in COMMANDS]


def test_the_past_is_shown_as_it_was_shown_then() -> None:
    """A dump after each step equals what is printed later for that moment, named by its time and by its last entry."""
    node = WrittenNode()
    box: dict[str, Any] = {"pod": "default/web", "uid": UID, "attempt": 0}
    steps: Sequence[Sequence[Event]] = [
        [accepted(containers=TWO_CONTAINERS, volumes=[{"name": "data", "emptyDir": {}}])],
        [pod.SandboxStartRequested(**box, spec_hash="s", requested_at=NOON)],
        [pod.SandboxStarted(**box, id="box", ip="10.0.0.7", started_at=NOON)],
        [*start(SIDE, 0, RUN, NOON + SECOND), recorded("Started", "Started container side")],
        [*start(APP, 0, "a0" * 32, NOON + SECOND), recorded("Started", "Started container app")],
        [*crash(0, "a0" * 32, NOON + 6 * SECOND), *start(APP, 1, "a1" * 32, NOON + 6 * SECOND)],
        [*crash(1, "a1" * 32, NOON + 7 * SECOND), back_off(1, NOON + 17 * SECOND)],
        [recorded("BackOff", "Back-off restarting failed container app", "Warning")],
        [pod.PodEnded(pod="default/web", uid=UID)],
    ]
    then = []
    for events in steps:
        node.now += SECOND
        at = node.write(WEB, *events)
        then.append((at, outputs(node)))
    node.now += 3_600 * SECOND
    for at, expected in then:
        assert outputs(node, "--at", f"@{at.milliseconds / 1000}") == expected
        assert outputs(node, "--at", f"#{at.n}") == expected
        assert outputs(node, "--at", str(at)) == expected
    assert [result.status for _, each in then for result in each].count(0) > len(then) * 9


@pytest.mark.parametrize("words", [("get", "pods"), ("describe", "pod", "web"), ("events",), ("logs", "web")])
@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("soon", "error: --at: found 'soon', expected a duration before now such as -15m"),
        ("2031-01-01", "error: --at: 2031-01-01T00:00:00Z is in the future: it is 2027-01-15T08:03:20Z"),
        ("-1h", "error: --at: 2027-01-15T07:03:20Z is before the beginning of the history: the history begins at"),
    ],
)
def test_a_moment_that_the_log_does_not_have_is_one_error_line(
    node: WrittenNode, words: Sequence[str], at: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    result = node.run(*words, "--at", at)
    assert (result.output, result.status) == ("", 1)
    assert result.errors.startswith(error)
    assert result.errors.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("get", "actors"), "found --at with actors, expected types whose past the log records."),
        (("get", "pods,cgroups"), "found --at with cgroups, expected types whose past the log records."),
        (("get", "pods", "-w"), "found --at with --watch, expected one of them."),
        (("events", "-w"), "found --at with --watch, expected one of them."),
        (("get", "pods", "--from", "-1m"), "found --from, expected it with --watch and pods."),
        (("logs", "web", "-f"), "found --at with --follow, expected one of them: --at prints no output."),
        (("logs", "web", "--tail", "3"), "found --at with --tail, expected one of them: --at prints no output."),
        (("logs", "web", "--since", "bogus"), "found --at with --since, expected one of them"),
    ],
)
def test_what_has_no_recorded_past_is_a_usage_error(node: WrittenNode, words: Sequence[str], error: str) -> None:
    result = node.run(*words, "--at", "-1m")
    assert error in result.errors
    assert result.status == 2


def test_logs_point_to_the_output_of_the_run_of_that_moment(node: WrittenNode) -> None:
    first, second = "a0" * 32, "a1" * 32
    [head, row] = columns(node.run("logs", "web", "-c", "app", "--at", f"@{(NOON + 30 * SECOND) / 1000}").output)
    assert head == ["POD", "CONTAINER", "STATE", "STARTED", "FINISHED", "READ WITH"]
    until = "docker logs --until 2027-01-15T08:00:30.000Z"
    assert row == ["web", "app", "running", "2027-01-15T08:00:01Z", "<none>", f"{until} {first}"]
    now = f"@{(NOON + 80 * SECOND) / 1000}"
    [_, app, side] = columns(node.run("logs", "web", "--all-containers", "--at", now).output)
    assert (app[1:3], app[5].split()[-1]) == (["app", "terminated"], second)
    assert (side[1:3], side[5].split()[-1]) == (["side", "running"], RUN)
    [_, before] = columns(node.run("logs", "web", "-p", "-c", "app", "--at", f"@{(NOON + 65 * SECOND) / 1000}").output)
    assert (before[2], before[5].split()[-1]) == ("terminated", first)


def test_the_node_of_the_past_is_shown_without_what_is_not_recorded(node: WrittenNode) -> None:
    [_, row] = columns(node.run("get", "nodes", "--at", "-1m").output)
    assert row[:2] == ["node-1", "Unknown"]
    assert "ProbeKillsHeldBack" in node.run("describe", "node", "--at", "-1m").output


def test_times_of_day_are_those_of_the_machine(node: WrittenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    expected = node.run("get", "pods", "--at", f"@{(NOON + 60 * SECOND) // 1000}")
    assert node.run("get", "pods", "--at", "08:01") == expected
    assert expected.status == 0
