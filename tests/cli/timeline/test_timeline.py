"""`chronolet timeline`: the containers, probes and restarts of some time."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from chronolet.cli.timeline.command import style
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Entry, Position, Record
from chronolet_schemas.podspec import Probe
from tests.cli.support.busy_node import LIVENESS, MINUTE, busy
from tests.cli.support.histories import APP, SECOND, UID, WEB, accepted, crash, start
from tests.cli.support.written_node import NOON, WrittenNode

BOX: dict[str, Any] = {"pod": "default/web", "uid": UID, "attempt": 0}


@pytest.fixture
def node() -> WrittenNode:
    return busy()


def containers(node: WrittenNode, *words: str) -> dict[str, Any]:
    result = node.run("timeline", "-o", "json", *words)
    assert (result.status, result.errors) == (0, ""), result
    return {f"{one['pod']}/{one['container']}": one for one in json.loads(result.output)["containers"]}


def conditions(row: Any) -> list[tuple[str, int, int]]:
    """Return conditions that lasted, with their beginning and end in seconds."""
    spans = [(one["condition"], (one["from"] - NOON) / SECOND, (one["to"] - NOON) / SECOND) for one in row["spans"]]
    return [(name, round(begin), round(end)) for name, begin, end in spans if begin != end]


def marks(row: Any) -> list[tuple[str, int, str]]:
    return [(one["what"], (one["at"] - NOON) // SECOND, one["detail"]) for one in row["marks"]]


def test_a_crash_loop_and_a_kill_because_of_a_probe(node: WrittenNode) -> None:
    rows = containers(node)
    assert set(rows) == {"web/app", "web/side", "gone/app"}
    app, side = rows["web/app"], rows["web/side"]
    assert conditions(app) == [("ready", 0, 60), ("ready", 60, 70), ("backing_off", 70, 600)]
    assert marks(app) == [("error", 60, "3"), ("restart", 60, "1"), ("error", 70, "3")]
    assert conditions(side) == [("ready", 0, 282), ("ready", 282, 600)]
    assert marks(side) == [
        ("probe_failed", 270, "Liveness"),
        ("probe_failed", 280, "Liveness"),
        ("probe_kill", 282, "137"),
        ("restart", 282, "1"),
    ]
    assert (app["restarts"], side["restarts"], app["type"]) == (1, 1, "app")


def test_a_part_of_the_time_begins_with_the_conditions_of_then(node: WrittenNode) -> None:
    rows = containers(node, "--from", f"@{(NOON + 65 * SECOND) // 1000}", "--to", f"@{(NOON + 200 * SECOND) // 1000}")
    assert conditions(rows["web/app"]) == [("ready", 65, 70), ("backing_off", 70, 200)]
    assert marks(rows["web/app"]) == [("error", 70, "3")]
    assert rows["web/app"]["restarts"] == 0
    assert conditions(rows["web/side"]) == [("ready", 65, 200)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("web",), ["web/app", "web/side"]),
        (("pod/web", "gone"), ["gone/app", "web/app", "web/side"]),
        (("-n", "data"), ["db/app"]),
        (("-n", "data", "db"), ["db/app"]),
        (("-A",), ["db/app", "gone/app", "web/app", "web/side"]),
    ],
)
def test_pods_are_selected_by_name_and_namespace(
    node: WrittenNode, words: Sequence[str], expected: Sequence[str]
) -> None:
    assert sorted(containers(node, *words)) == expected


def test_a_pod_that_is_gone_at_the_end_is_shown_until_then(node: WrittenNode) -> None:
    [row] = containers(node, "-n", "data").values()
    assert conditions(row) == [("starting", 70, 342)]


def alone(*steps: Sequence[Any], spec: Any = None) -> dict[str, Any]:
    """Return the row of container app of a pod to which these events happen, a minute apart."""
    node = WrittenNode()
    node.write(WEB, accepted(**(spec or {})), pod.SandboxStartRequested(**BOX, spec_hash="s", requested_at=NOON))
    node.write(WEB, pod.SandboxStarted(**BOX, id="box", started_at=NOON))
    for events in steps:
        node.now += MINUTE
        node.write(WEB, *events)
    node.now += MINUTE
    row: dict[str, Any] = containers(node)["web/app"]
    return row


def probed(result: prober.ProbeResult) -> list[Any]:
    about: dict[str, Any] = {**APP, "attempt": 0, "id": "a", "started_at": NOON, "probe": "Readiness"}
    return [pod.ContainerProbed(**about, result=result)]


def ended(code: int, reason: str) -> pod.ContainerExited:
    return pod.ContainerExited(
        **APP, attempt=0, id="a", exit_code=code, reason=reason, started_at=NOON, finished_at=NOON + 1
    )


def stop(reason: pod.StopReason) -> pod.ContainerStopRequested:
    return pod.ContainerStopRequested(**APP, attempt=0, id="a", grace_period_seconds=1, deadline=NOON, reason=reason)


STARTED = start(APP, 0, "a", NOON)
READINESS: dict[str, Any] = {
    "containers": [{"name": "app", "image": "i", "readinessProbe": {"exec": {"command": ["x"]}}}]
}
REQUESTED = pod.ProbingRequested(
    **APP,
    attempt=0,
    id="a",
    digest="d",
    started_at=NOON,
    ip="",
    restarts="Always",
    started=True,
    field="f",
    probe="Readiness",
    definition=Probe(),
    period_milliseconds=10,
)


@pytest.mark.parametrize(
    ("steps", "spec", "expected", "marked"),
    [
        ([STARTED], None, ["starting", "ready"], []),
        ([STARTED], READINESS, ["starting", "running"], []),
        (
            [STARTED, [REQUESTED], probed("success"), probed("failure")],
            READINESS,
            ["starting", "running", "ready", "running"],
            [],
        ),
        ([STARTED, [ended(0, "Completed")]], None, ["starting", "ready", "completed"], []),
        ([STARTED, [ended(1, "Error")]], None, ["starting", "ready", "failed"], [("error", "1")]),
        ([STARTED, [ended(137, "OOMKilled")]], None, ["starting", "ready", "failed"], [("oom", "137")]),
        ([STARTED, [stop("Deleted")], [ended(143, "Error")]], None, ["starting", "ready", "failed"], []),
        (
            [STARTED, [stop("StartupFailed")], [ended(137, "Error")]],
            None,
            ["starting", "ready", "failed"],
            [("probe_kill", "137")],
        ),
        (
            [STARTED, [ended(137, "Error")], [pod.ExitRead(**APP, attempt=0, id="a", oom_killed=True)]],
            None,
            ["starting", "ready", "failed"],
            [("error", "137"), ("oom", "137")],
        ),
        (
            [STARTED, [ended(137, "Error")], [pod.ExitRead(**APP, attempt=0, id="a", message="bye")]],
            None,
            ["starting", "ready", "failed"],
            [("error", "137")],
        ),
        (
            [STARTED, [ended(0, "Completed")], start(APP, 1, "b", NOON)],
            None,
            ["starting", "ready", "completed", "ready"],
            [("restart", "1")],
        ),
    ],
)
def test_conditions_and_marks_of_a_container(
    steps: Sequence[Sequence[Any]], spec: Any, expected: Sequence[str], marked: Sequence[tuple[str, str]]
) -> None:
    row = alone(*steps, spec=spec)
    assert [name for name, _, _ in conditions(row)] == expected
    assert [(what, detail) for what, _, detail in marks(row)] == marked


def test_probes_without_a_verdict_are_marked(node: WrittenNode) -> None:
    about: dict[str, Any] = {"pod": "default/web", "uid": UID, "container": "side", "probe": "Liveness", "id": "x"}
    node.write(LIVENESS, prober.ProbeErrored(**about, at=node.now, milliseconds=1))
    node.write("prober/strange", prober.ProbeErrored(**about, at=node.now, milliseconds=1))
    assert marks(containers(node)["web/side"])[-1] == ("probe_unjudged", 600, "Liveness")


def test_the_text_is_a_line_per_container(node: WrittenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "60")
    output = node.run("timeline", "web").output
    assert output.splitlines() == [
        "Fri, 15 Jan 2027 08:00:00 +0000 to Fri, 15 Jan 2027 08:10:00 +0000",
        "          08:00   08:02   08:04   08:06   08:08     RESTARTS",
        "web/app   ░███E···································  1",
        "web/side  ░█████████████████K█████████████████████  1",
        "",
        "· backing off  ░ starting  █ ready",
        "K stopped because of a probe  E ended with an error",
    ]
    assert "\x1b" not in output


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("typo",), 1, 'Error from server (NotFound): pods "typo" not found'),
        (("-n", "empty"), 0, "No containers found in empty namespace."),
        (("--from", "soon"), 1, "error: --from: found 'soon', expected a duration before now"),
        (("--to", "2031-01-01T00:00:00Z"), 1, "error: --to: 2031-01-01T00:00:00Z is in the future"),
        (("--from", "-3h"), 1, "error: --from: 2027-01-15T05:10:00Z is before the beginning of the history"),
        (("--from", "-1m", "--to", "-5m"), 1, "error: --from: found -1m, expected a moment before --to"),
        (("-A", "web"), 2, "a resource cannot be retrieved by name across all namespaces."),
        (("node/x",), 2, "found 'node/x', expected TYPE/NAME such as pod/web."),
    ],
)
def test_what_cannot_be_drawn_is_one_line(node: WrittenNode, words: Sequence[str], status: int, error: str) -> None:
    result = node.run("timeline", *words)
    assert (result.output, result.status) == ("", status)
    assert error in result.errors
    assert result.errors.count("\n") == 1


def test_foreign_and_unknown_entries_change_nothing(node: WrittenNode) -> None:
    expected = containers(node)
    with node.server.changed:
        node.server.append(Record("pod.FromTheFuture@1", WEB, "", "pod/0#9", "", b"\x81\xa1a\x01"))
        node.server.log.append(Entry(Position(node.now, 0), "", "", "", "", "", b""))
    result = node.run("timeline", "-o", "json")
    assert {f"{one['pod']}/{one['container']}": one for one in json.loads(result.output)["containers"]} == expected
    assert result.errors.startswith("note: 1 entry of the log")


def test_after_a_clock_step_events_keep_their_order(node: WrittenNode) -> None:
    node.now += 60 * MINUTE
    node.write(WEB, *start(APP, 2, "c", node.now))
    node.now -= 60 * MINUTE
    node.write(WEB, *crash(2, "c", node.now))
    row = containers(node)["web/app"]
    assert marks(row)[-2:] == [("restart", 4_200, "2"), ("error", 600, "3")]
    assert node.run("timeline").status == 0


@pytest.mark.parametrize(
    ("encoding", "expected"), [("utf-8", False), ("UTF8", False), ("ascii", True), ("latin-1", True)]
)
def test_other_encodings_than_utf8_get_ascii(encoding: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w", encoding=encoding) as stream:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", stream)
        assert style(NOON).ascii is expected


@pytest.mark.parametrize(
    ("no_color", "terminal", "expected"), [("", True, True), ("1", True, False), ("", False, False)]
)
def test_only_a_terminal_gets_colours_unless_no_color_is_set(
    no_color: str, terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    controlling, controlled = os.openpty()
    try:
        monkeypatch.setenv("NO_COLOR", no_color)
        with open(controlled if terminal else os.devnull, "w") as stream:  # noqa: PTH123
            monkeypatch.setattr(sys, "stdout", stream)
            assert ("\x1b[" in style(NOON).paint("=", "green")) is expected
    finally:
        os.close(controlling)
